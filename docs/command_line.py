"""Write docs/cli.md, the reference of the command line, from the parser of `csebench`.

python docs/command_line.py
"""

from __future__ import annotations

import argparse
import re
from itertools import chain

from csebench.base.files import write_text
from csebench.base.project import ROOT
from csebench.base.terminal import capitalised
from csebench.cli.verbs import GROUPS, parser

PAGE = ROOT / "docs" / "cli.md"
START = """\
# Command line

`csebench VERB --help` prints the same texts. (`docs/command_line.py` writes this page.)

Exit codes: 0 done; 1 a run failed; 2 bad input, with one message and nothing written; 130
interrupted.

Verdicts have colours on a terminal, unless `NO_COLOR=1` is set. Output to a pipe or file has none.
"""
HIDDEN = ("--help",)  # left out
EVERYWHERE = "--project"  # every verb has this option, and the page explains it once


def reference() -> str:
    """Return the page as Markdown: the verbs by group, then a section for each of them."""
    verbs = verb_parsers()
    summaries = verb_summaries()
    verb_table = ["| verb | what it does |", "|---|---|"]
    for group, names in GROUPS.items():
        verb_table.append(f"| **{group}** | |")
        for name in names:
            verb_table.append(f"| [`{name}`](#{name}) | {escaped(summaries[name])} |")
    any_verb = next(iter(verbs.values()))
    parts = [START, "\n".join(verb_table) + "\n", every_verb(any_verb)]
    for name, verb in verbs.items():
        parts.append(section(name, verb))
    return "\n".join(parts)


def subparsers() -> argparse._SubParsersAction:
    """Return the action of the parser that holds the verbs."""
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action
    raise LookupError("the parser has no verbs")


def verb_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each verb, in the order of `csebench --help`."""
    parsers = subparsers().choices
    names = chain.from_iterable(GROUPS.values())
    return {name: parsers[name] for name in names}


def verb_summaries() -> dict[str, str]:
    """Return the line of `csebench --help` about each verb."""
    return {choice.dest: choice.help or "" for choice in subparsers()._choices_actions}


def every_verb(verb: argparse.ArgumentParser) -> str:
    """Return the paragraph about the option that every verb has.

    Args:
        verb: any of the verbs.
    """
    for action in verb._actions:
        if EVERYWHERE in action.option_strings:
            return (
                f"Every verb takes `{EVERYWHERE} {action.metavar}`: {escaped(help_text(action))}.\n"
            )
    raise LookupError(f"no verb has {EVERYWHERE}")


def section(name: str, verb: argparse.ArgumentParser) -> str:
    """Return the section of a verb: what it does, its arguments, and examples."""
    lines = [f"## {name}", "", sentence(verb.description or ""), ""]
    rows = []
    for action in verb._actions:
        is_common = any(flag in (*HIDDEN, EVERYWHERE) for flag in action.option_strings)
        if not is_common:
            rows.append(f"| {flags(action)} | {escaped(help_text(action))} |")
    if rows:
        lines += ["| argument | meaning |", "|---|---|", *rows, ""]
    examples = verb.get_default("examples")
    lines += ["```sh", *examples, "```", ""]
    return "\n".join(lines)


def flags(action: argparse.Action) -> str:
    """Return how an argument is written: `--seed N`, `TARGET …`, `--format {md,csv}`."""
    value = value_text(action)
    if not action.option_strings:
        return f"`{value}`"
    names = ", ".join(action.option_strings)
    if not value:
        return f"`{names}`"
    return f"`{names} {value}`"


def value_text(action: argparse.Action) -> str:
    """Return the placeholder of the value of an argument, empty for a switch."""
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        name = str(action.metavar)
    elif action.choices is not None and action.option_strings:
        name = "{" + ",".join(str(choice) for choice in action.choices) + "}"
    else:
        name = action.dest.upper()
    if action.nargs in ("*", "+"):
        return f"{name} …"
    if action.nargs == "?" and not action.option_strings:
        return f"[{name}]"
    return name


def help_text(action: argparse.Action) -> str:
    """Return the help of an argument with its default filled in."""
    text = action.help or ""
    return text.replace("%(default)s", str(action.default)).replace("%%", "%")


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a full stop at its end."""
    text = capitalised(text)
    return text if text.endswith(".") else f"{text}."


def escaped(text: str) -> str:
    """Return a text that may stand in a cell of a Markdown table."""
    text = re.sub(r"\s+", " ", text)
    return text.replace("|", r"\|").replace("<", r"\<").replace("*", r"\*")


def main() -> None:
    write_text(PAGE, reference())


if __name__ == "__main__":
    main()
