"""Requests that no client means: those of the recorded sessions, changed at random.

One seed gives the same requests every time. About a third are left as they are, so that there are
objects for the others to meet.
"""

from __future__ import annotations

import gzip
import json
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import yaml

CORPUS = Path(__file__).parents[2] / "oracle" / "corpora" / "apiserver.ndjson.gz"
LEFT_ALONE = 0.3
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")
TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "",
    "application/json; charset=\xff",
)
ACCEPTS = (
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "*/*;q=nan",
    ";;=,;",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, 1e308, -1e308, 2**31, 2**63, 2**64, -(2**63) - 1),
    *("", " ", "a", "-", "/", "%", "*", "..", "A" * 300, "a" * 70_000, "\x00", "\n", "é", "\u2028"),
    *("1e400", "99999999999999999999Gi", "-5", "0x10", "1e", "NaN", "2020-01-01T00:00:00Z", "~1~0"),
    *([], {}, [None], [[]], {"": None}, {"a": {"b": []}}, [1, "a", {}], [{}] * 50, {"kind": 5}),
    *("(a+)+$", "[", "a{1,1000}{1,1000}", "$(x)", "{{", ".spec.x", "[*]", "{.a[?(@.b)]}", "k8s.io"),
)
QUERIES = (
    *("watch", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "dryRun"),
    *("resourceVersionMatch", "timeoutSeconds", "sendInitialEvents", "allowWatchBookmarks"),
    *("fieldManager", "fieldValidation", "force", "gracePeriodSeconds", "propagationPolicy"),
    *("orphanDependents", "pretty", "includeObject"),
)
TEXTS = (
    *("", "true", "1", "-1", "99999999999999999999999", "All", "Strict", "a=b", "a in (b,c)", "!a"),
    *(
        "a notin (",
        "metadata.name=a",
        "metadata.name=a,,",
        "=",
        "==",
        "a=b,c!=d,e in (f)",
        "\\,\\=",
    ),
    *("Exact", "NotOlderThan", "Foreground", "Orphan", "\x00", "\xff", "x" * 5000, "a>b", "a<1"),
    *("eyJyZXZpc2lvbiI6MX0", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0"),
)
COMPACT = (b"Pod", b"Node", b"DeleteOptions", b"ConfigMap")
NESTINGS = ("[", "{", '{"a":', "[{", "- ", "a:\n ", "{a: ", "&a [", "? ")


@dataclass(frozen=True, slots=True)
class Wire:
    """A request as it goes out."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def __str__(self) -> str:
        target = f"{self.path}?{self.query}" if self.query else self.path
        return f"{self.method} {target[:300]} {self.headers} {self.body[:2000]!r}"


def recorded(path: Path = CORPUS) -> list[Wire]:
    """The requests of the recorded sessions, in their order."""
    with gzip.open(path) as lines:
        sessions = [json.loads(line) for line in lines]
    return [
        _wire(step, f"s{number}") for number, one in enumerate(sessions) for step in one["steps"]
    ]


def _wire(step: dict[str, Any], session: str) -> Wire:
    query = step.get("query") or ""
    body = step.get("body")
    headers: dict[str, str | None] = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        **(step.get("headers") or {}),
    }
    sent = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    return Wire(
        step["method"],
        quote(_filled(step["path"], session), safe="/%:~"),
        _filled(query if isinstance(query, str) else urlencode(query, doseq=True), session),
        tuple((name, value) for name, value in headers.items() if value is not None),
        _filled(sent, session).encode(),
    )


def _filled(text: str, session: str) -> str:
    """The text with its variables filled in, those of earlier answers by something."""
    text = text.replace("{{ns}}", "default").replace("%7B%7Bns%7D%7D", "default")
    text = text.replace("{{id}}", session).replace("%7B%7Bid%7D%7D", session)
    while (start := text.find("{{")) >= 0 and (end := text.find("}}", start)) >= 0:
        text = text[:start] + "7" + text[end + 2 :]
    return text


def mutated(seed: int, wires: list[Wire]) -> Iterator[Wire]:
    """Requests without end: the recorded ones over and over, each changed in its own way."""
    rng = Random(seed)
    while True:
        for wire in wires:
            if rng.random() < LEFT_ALONE:
                yield wire
            else:
                yield _mutate(rng, wire, wires)


def _mutate(rng: Random, wire: Wire, wires: list[Wire]) -> Wire:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        wire = rng.choice(_WAYS)(rng, wire, wires)
    return wire


def _other_method(rng: Random, wire: Wire, _: list[Wire]) -> Wire:
    return replace(wire, method=rng.choice(METHODS))


def _other_path(rng: Random, wire: Wire, wires: list[Wire]) -> Wire:
    parts = wire.path.split("/")
    odd = ("", "..", "%2e%2e", "%00", "%ff", "*", "a" * 400, "status", "scale", "binding", "watch")
    match rng.randrange(4):
        case 0:
            parts[rng.randrange(len(parts))] = rng.choice(odd)
        case 1:
            parts.insert(rng.randrange(len(parts) + 1), rng.choice(odd))
        case 2:
            del parts[rng.randrange(len(parts))]
        case _:
            return replace(wire, path=rng.choice(wires).path)
    return replace(wire, path="/".join(parts) or "*")


def _other_query(rng: Random, wire: Wire, _: list[Wire]) -> Wire:
    pairs = [(rng.choice(QUERIES), rng.choice(TEXTS)) for _ in range(rng.randint(1, 3))]
    added = urlencode(pairs, encoding="latin-1", errors="replace")
    if rng.random() < 0.1:
        added = _garbled(rng, added.encode("latin-1")).decode("latin-1")
    return replace(wire, query=f"{wire.query}&{added}" if wire.query else added)


def _other_header(rng: Random, wire: Wire, _: list[Wire]) -> Wire:
    odd = rng.choice(
        (
            ("Content-Type", rng.choice(TYPES)),
            ("Accept", rng.choice(ACCEPTS)),
            ("User-Agent", rng.choice(("", "/", "\xff" * 300))),
            ("Impersonate-User", rng.choice(("a", "system:serviceaccount:a", "\xff"))),
            ("Impersonate-Extra-%", "x"),
            ("Authorization", rng.choice(("Bearer", "Basic \xff", "Bearer \xff"))),
        )
    )
    others = [one for one in wire.headers if one[0] != odd[0]]
    return replace(wire, headers=(*others, odd))


def _other_value(rng: Random, wire: Wire, wires: list[Wire]) -> Wire:
    """A JSON body with something else somewhere in it."""
    document = _document(wire)
    places = list(_places(document))
    if not places:
        return _other_bytes(rng, wire, wires)
    holder, key = rng.choice(places)
    match rng.randrange(5):
        case 0:
            del holder[key]
        case 1:
            holder[key] = _stranger(rng, wires)
        case 2 if isinstance(holder, dict):
            holder["".join(rng.choices(string.ascii_letters, k=5))] = holder[key]
        case 3 if isinstance(holder, list):
            holder.insert(0, holder[key])
        case _:
            holder[key] = rng.choice(VALUES)
    return replace(wire, body=_written(rng, wire, document))


def _written(rng: Random, wire: Wire, document: Any) -> bytes:
    if ("Content-Type", "application/yaml") in wire.headers and rng.random() < 0.8:
        return yaml.safe_dump(document).encode()
    return json.dumps(document).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys: Iterable[Any] = ()
    if isinstance(value, dict):
        keys = list(value)[:100]
    elif isinstance(value, list):
        keys = range(min(len(value), 50))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _stranger(rng: Random, wires: list[Wire]) -> Any:
    """A part of another request."""
    places = list(_places(_document(rng.choice(wires))))
    if not places:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    return holder[key]


def _document(wire: Wire) -> Any:
    """The body, if it is JSON."""
    try:
        return json.loads(wire.body)
    except (ValueError, RecursionError):
        return None


def _enlarged(rng: Random, wire: Wire, wires: list[Wire]) -> Wire:
    """A JSON body with a list, or an object, of very many items."""
    document = _document(wire)
    places = [pair for pair in _places(document) if isinstance(pair[0][pair[1]], dict | list)]
    if not places:
        return _other_query(rng, wire, wires)
    holder, key = rng.choice(places)
    many = rng.choice((100, 2000, 20_000))
    items = holder[key]
    if isinstance(items, dict):
        items |= {f"a{number}": rng.choice(("b", 1, None)) for number in range(many)}
    else:
        holder[key] = [_renamed(rng.choice(items or [0]), number) for number in range(many)]
    return replace(wire, body=json.dumps(document).encode()[:3_000_000])


def _renamed(item: Any, number: int) -> Any:
    """An item of a list that differs from the others by its name, or by itself."""
    if isinstance(item, dict):
        return {**item, "name": f"n{number}"} if "name" in item else item
    return f"{item}{number}" if isinstance(item, str) else number


def _other_bytes(rng: Random, wire: Wire, _: list[Wire]) -> Wire:
    return replace(wire, body=_garbled(rng, wire.body))


def _garbled(rng: Random, data: bytes) -> bytes:
    where = rng.randint(0, len(data))
    match rng.randrange(4):
        case 0:
            return data[:where]
        case 1:
            return data[:where] + rng.randbytes(rng.randint(1, 8)) + data[where:]
        case 2:
            return data[:where] + data[where : where + 1000] * rng.choice((2, 50)) + data[where:]
        case _:
            return data[:where] + rng.randbytes(1) + data[where + 1 :]


def _nested(rng: Random, wire: Wire, _: list[Wire]) -> Wire:
    """A body nested more deeply than anybody needs."""
    depth = rng.choice((50, 500, 3000, 30_000))
    body = (rng.choice(NESTINGS) * depth).encode()
    if rng.random() < 0.5:
        body = wire.body.replace(b'"spec":', b'"spec":' + b'{"a":' * depth, 1)
    kind = ("Content-Type", rng.choice(TYPES[:7]))
    others = [one for one in wire.headers if one[0] != kind[0]]
    return replace(wire, body=body, headers=(*others, kind))


def _compact(rng: Random, wire: Wire, _: list[Wire]) -> Wire:
    """A body that says it is protobuf: an envelope around what may be a message."""
    version, kind = rng.choice((*((b"v1", kind) for kind in COMPACT), (b"apps/v1", b"Deployment")))
    type_ = _field(1, version) + _field(2, kind)
    raw = b"".join(
        _field(rng.randint(1, 12), rng.randbytes(rng.randint(0, 12)))
        for _ in range(rng.randint(0, 9))
    )
    for _nesting in range(rng.choice((0, 1, 5, 500))):
        raw = _field(rng.randint(1, 4), raw)[:200_000]
    body = b"k8s\x00" + _field(1, type_) + _field(2, raw)
    if rng.random() < 0.3:
        body = _garbled(rng, body)
    kept = [one for one in wire.headers if one[0] != "Content-Type"]
    kind_header = ("Content-Type", "application/vnd.kubernetes.protobuf")
    return replace(wire, body=body, headers=(*kept, kind_header))


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes, as protobuf writes it."""
    length, size = b"", len(data)
    while size > 127:
        length += bytes((size & 127 | 128,))
        size >>= 7
    return bytes((number << 3 | 2,)) + length + bytes((size,)) + data


_WAYS = (
    *(_other_value,) * 10,
    *(_other_bytes,) * 2,
    *(_other_query,) * 3,
    *(_other_header,) * 2,
    *(_other_path,) * 2,
    *(_other_method, _nested, _compact, _enlarged),
)
