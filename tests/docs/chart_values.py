"""All values of a deployment as a table, from the types."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.deploy.value_types import (
    AffinityValue,
    ContainerResources,
    PullSecret,
    StrictStruct,
    TolerationValue,
    is_section,
)
from bayplan.deploy.values import COMMENTS, Values
from tests.docs.types import fields_of, tables, words

PASSED_THROUGH = (PullSecret, ContainerResources, TolerationValue, AffinityValue)


def table() -> str:
    """A row for each value, by its path, and what is passed on as it is."""
    rows = "".join(_rows(Values(), ""))
    passed = "\n".join(tables(one) for one in PASSED_THROUGH)
    return f"| value | type | usual | |\n|---|---|---|---|\n{rows}\n{passed}"


def _rows(held: StrictStruct, above: str) -> Iterator[str]:
    inner = {one.encode_name: getattr(held, one.name) for one in msgspec.structs.fields(held)}
    for field in fields_of(type(held)):
        path, usual = f"{above}{field.name}", inner[field.name]
        said = COMMENTS.get(path) or field.said
        if is_section(usual):
            yield f"| **`{path}`** | | | {said} |\n"
            yield from _rows(usual, f"{path}.")
        else:
            yield f"| `{path}` | {words(field.type)} | {_usual(usual)} | {said} |\n"


def _usual(value: object) -> str:
    plain = msgspec.to_builtins(value)
    if plain in ("", [], {}):
        return ""
    shown = plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
    return f"`{shown.strip()}`"
