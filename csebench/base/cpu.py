"""What Linux states about the CPU."""

from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")


def cpu_fact(*names: str) -> str | None:
    """Read a fact about the CPU, under the first line that has one of these names.

    Returns:
        None if there is no such line, or on another system.
    """
    try:
        text = CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        name, _, fact = line.partition(":")
        if name.strip() in names:
            return fact.strip()
    return None
