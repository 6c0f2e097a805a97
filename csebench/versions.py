"""`python -m csebench.versions`: bring the version lock (csebench/plan/version_lock.py) up to date.

It refuses a unit whose code changed under an unchanged version, unless called with `--bless UNIT …`.
"""

from __future__ import annotations

import sys

from csebench.base.errors import BadInput, unknown
from csebench.base.files import write_json
from csebench.plan import version_lock
from csebench.plan.catalog import require_checkout


def main(arguments: list[str]) -> None:
    require_checkout()
    blessed = arguments[arguments.index("--bless") + 1 :] if "--bless" in arguments else []
    now = version_lock.current()
    for unit in blessed:
        if unit not in now:
            raise unknown("unit", unit, now, "--bless")
    refused = [unit for unit in version_lock.changed_without_bump() if unit not in blessed]
    if refused:
        raise BadInput(
            f"{', '.join(refused)}: the code changed, the version did not. Bump `version` if a number can change;"
            " if none can: python -m csebench.versions --bless UNIT …"
        )
    write_json(version_lock.LOCK, now)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(f"csebench.versions: {error}", file=sys.stderr)
        sys.exit(2)
