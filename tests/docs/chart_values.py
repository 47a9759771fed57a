"""All values of a deployment as a table, from the types."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.deploy.values import WHY, Values
from bayplan.deploy.words import Affinity, Resources, SecretName, Strict, Toleration, is_section
from tests.docs.types import fields_of, tables, words

HANDED = (SecretName, Resources, Toleration, Affinity)


def table() -> str:
    """A row for each value, by its path, and what is handed on as it is."""
    rows = "".join(_rows(Values(), ""))
    handed = "\n".join(tables(one) for one in HANDED)
    return f"| value | type | usual | |\n|---|---|---|---|\n{rows}\n{handed}"


def _rows(held: Strict, above: str) -> Iterator[str]:
    inner = {one.encode_name: getattr(held, one.name) for one in msgspec.structs.fields(held)}
    for field in fields_of(type(held)):
        path, usual = f"{above}{field.name}", inner[field.name]
        said = WHY.get(path) or field.said
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
