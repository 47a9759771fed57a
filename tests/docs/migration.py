"""The tables of docs/migration: every flag and metric of the program that a daemon replaces.

`upstream/*.yaml` lists all of them. The command and its metrics registry tell which are the same;
for each of the others the file has what replaces it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from bayplan.cli.main import build_app
from tests.docs.reference import registries

FOLDER = Path(__file__).parents[2] / "docs" / "migration"
SAME = "the same"


class Instead(msgspec.Struct, forbid_unknown_fields=True):
    """What is here instead of some names, which may be patterns."""

    here: str
    names: list[str]


class Upstream(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What somebody comes from."""

    of: str
    command: str
    flags: list[str]
    metrics: list[str]
    instead_of_flags: list[Instead]
    instead_of_metrics: list[Instead]


@cache
def upstreams() -> dict[str, Upstream]:
    """All of them, by the name of their page."""
    files = sorted((Path(__file__).parent / "upstream").glob("*.yaml"))
    return {file.stem: msgspec.yaml.decode(file.read_bytes(), type=Upstream) for file in files}


def pages() -> dict[Path, str]:
    """Each page, and what is generated of it."""
    return {FOLDER / f"{name}.md": _tables(one) for name, one in upstreams().items()}


def our_flags(command: str) -> set[str]:
    """The flags that a command takes, without their dashes."""
    found = build_app(command)[command].assemble_argument_collection()
    names = {name for argument in found for name in argument.names}
    return {name.removeprefix("--") for name in names if name.startswith("--")}


def our_metrics(command: str) -> set[str]:
    """The metrics that a daemon serves."""
    families = registries()[command].collect()
    return {one.name + ("_total" if one.type == "counter" else "") for one in families}


def here(names: list[str], ours: set[str], instead: list[Instead]) -> dict[str, str]:
    """For each name what is here; ValueError if nothing or two things are said of one."""
    found = {}
    for name in names:
        said = [one.here for one in instead if any(fnmatchcase(name, it) for it in one.names)]
        said += [SAME] * (name in ours)
        if len(said) != 1:
            raise ValueError(f"{name}: {said or 'nothing is said'}")
        found[name] = said[0]
    return found


def _tables(one: Upstream) -> str:
    flags = here(one.flags, our_flags(one.command), one.instead_of_flags)
    metrics = here(one.metrics, our_metrics(one.command), one.instead_of_metrics)
    dashed = {f"--{name}": text for name, text in flags.items()}
    return f"{_section('flag', one, dashed)}\n{_section('metric', one, metrics)}"


def _section(kind: str, one: Upstream, found: dict[str, str]) -> str:
    """The names that are the same in one list, and those with one answer in one row."""
    same = sorted(name for name, text in found.items() if text == SAME)
    rows = sorted(
        (sorted(name for name in found if found[name] == text), text)
        for text in set(found.values()) - {SAME}
    )
    return (
        f"## Every {kind}\n\n{one.of} has {len(found)} {kind}s; {len(same)} have the same name and "
        f"meaning in `bayplan {one.command}`.\n\n"
        f"| {one.of} | `bayplan {one.command}` |\n|---|---|\n"
        + "".join(f"| {_listed(names)} | {text} |\n" for names, text in rows)
        + f"\nThe same: {_listed(same)}.\n"
    )


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
