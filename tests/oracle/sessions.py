"""Putting recorded requests to a server, over HTTPS, as they were put to kube-apiserver.

A session has a namespace of its own. Variables in a request are filled from the answers before it:
`{{id}}` is new each time, `{{ns}}` is the namespace, `{{3.metadata.uid}}` a field of the answer of
step 3, and `{"$copy": "3", "$merge": {…}}` that answer after a merge patch.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
from yarl import URL

from tests.oracle.corpus import SessionCase, Step

_VARIABLE = re.compile(r"\{\{([^{}]+)\}\}")
_LETTERS = "bcdfgjkmnpqrstvwxz"
_USUAL = {"Accept": "application/json", "User-Agent": "wire/1"}
_MERGE = {"Content-Type": "application/merge-patch+json"}
_POLL_SECONDS = 0.02
_POLLS = 600


class Raw(NamedTuple):
    """An answer as it came."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def document(self) -> Any:
        """The body as JSON; None if it is something else."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


class Wire:
    """Sends requests to one server, on connections of its own."""

    def __init__(self, session: aiohttp.ClientSession, base: str, token: str) -> None:
        self._session = session
        self._base = base
        self._usual = {**_USUAL, "Authorization": f"Bearer {token}"}

    async def __call__(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: dict[str, str | None] | None = None,
    ) -> Raw:
        """Send one request and take the whole answer."""
        usual = self._usual | ({"Content-Type": "application/json"} if body is not None else {})
        given = {name.lower() for name in headers or {}}
        sent = {name: value for name, value in usual.items() if name.lower() not in given}
        sent |= {name: value for name, value in (headers or {}).items() if value is not None}
        url = URL(self._base + target, encoded=True)
        async with self._session.request(
            method, url, data=body, headers=sent, skip_auto_headers=("Accept", "Content-Type")
        ) as answer:
            pairs = [(name.lower(), value) for name, value in answer.headers.items()]
            return Raw(answer.status, pairs, await answer.read())


@dataclass
class Memory:
    """What a session has seen so far."""

    id: str
    answers: dict[str, Any] = field(default_factory=dict)
    prefixes: list[str] = field(default_factory=list)
    """The `generateName`s that were sent, without the id."""
    made: dict[str, str] = field(default_factory=dict)
    """Names that the server made, and what stands for them."""

    def look_up(self, variable: str) -> Any:
        """The value of a variable; None if there is none."""
        if variable in ("id", "ns"):
            return self.id if variable == "id" else f"ns-{self.id}"
        first, *parts = variable.split(".")
        found: Any = self.answers.get(first)
        for part in parts:
            try:
                found = found[int(part)] if isinstance(found, list) else found[part]
            except (KeyError, IndexError, TypeError, ValueError):
                return None
        return found

    def fill(self, value: Any) -> Any:
        """A value with its variables filled in."""
        if isinstance(value, str):
            whole = _VARIABLE.fullmatch(value)
            if whole:
                found = self.look_up(whole[1])
                return "" if found is None else copy.deepcopy(found)
            return _VARIABLE.sub(lambda match: str(self.look_up(match[1]) or ""), value)
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict) and "$copy" in value:
            return merged(self.look_up(value["$copy"]) or {}, self.fill(value.get("$merge", {})))
        if isinstance(value, dict):
            return {self.fill(key): self.fill(item) for key, item in value.items()}
        return value

    def target(self, path: str, query: dict[str, Any] | str | None = None) -> str:
        """The path and the query to ask for."""

        def quoted(match: re.Match[str]) -> str:
            return quote(str(self.look_up(match[1]) or ""), safe="")

        filled = self.fill(query or "")
        if isinstance(filled, dict):
            pairs = filled.items()
            filled = "&".join(f"{quote(k, safe='')}={quote(str(v), safe='')}" for k, v in pairs)
        return _VARIABLE.sub(quoted, path) + (f"?{filled}" if filled else "")


def merged(old: Any, patch: Any) -> Any:
    """A value after a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    new = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key), value)
    return new


async def run(
    wire: Wire, session: SessionCase, noted: Callable[[int, Step, Raw, Memory], None]
) -> None:
    """Send a session's requests; `noted` is told of each answer as it comes."""
    rng = random.Random()
    memory = Memory(rng.choice(_LETTERS) + "".join(rng.choices(_LETTERS + "2456789", k=7)))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"ns-{memory.id}"}}
    await wire("POST", "/api/v1/namespaces", json.dumps(namespace).encode())
    for number, step in enumerate(session.steps, 1):
        raw = await _send(wire, step, memory)
        document = raw.document()
        if isinstance(document, dict | list):
            memory.answers[str(number)] = document
        noted(number, step, raw, memory)
    await _clean_up(wire, session, memory)


async def _send(wire: Wire, step: Step, memory: Memory) -> Raw:
    await asyncio.sleep(step.pause)
    filled, body = memory.fill(step.body), None
    if filled is not None:
        body = (filled if isinstance(filled, str) else json.dumps(filled)).encode()
        _note_prefix(filled, memory)
    target = memory.target(step.path, step.query)
    for _ in range(_POLLS):
        raw = await wire(step.method, target, body, memory.fill(step.headers or {}))
        if step.poll is None or _is_there(step.poll, raw):
            break
        await asyncio.sleep(_POLL_SECONDS)
    return raw


def _note_prefix(body: Any, memory: Memory) -> None:
    meta = body.get("metadata") if isinstance(body, dict) else None
    prefix = meta.get("generateName") if isinstance(meta, dict) else None
    if prefix and isinstance(prefix, str):
        memory.prefixes.append(prefix[:58].replace(memory.id, "{{id}}"))


def _is_there(poll: str, raw: Raw) -> bool:
    """Whether what a step waits for has come."""
    if poll == "established":
        status = (raw.document() or {}).get("status")
        return isinstance(status, dict) and any(
            condition.get("type") == "Established" and condition.get("status") == "True"
            for condition in status.get("conditions") or ()
        )
    return raw.status == (200 if poll == "served" else 404)


async def _clean_up(wire: Wire, session: SessionCase, memory: Memory) -> None:
    for path in session.cleanup:
        target = memory.target(path)
        gone = await wire("DELETE", target + "?gracePeriodSeconds=0")
        if gone.status == 200 and b'"finalizers"' in gone.body:
            await wire("PATCH", target, b'{"metadata":{"finalizers":null}}', {**_MERGE})
    await wire("DELETE", f"/api/v1/namespaces/ns-{memory.id}")
