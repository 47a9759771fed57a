"""Comparing the embedded API server's answers with kube-apiserver's, request by request.

An answer is equal at three levels, each of which needs the one before: its status; the reason and
the causes of a refusal; everything (messages, objects, headers). Who owns which fields is counted
apart.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.oracle.corpus import SessionCase, Step
from tests.oracle.normalization import normalized
from tests.oracle.sessions import Memory, Raw, Wire, run

LEVELS = ("status", "reasons", "everything", "owners")
_MOST_DIFFERENCES = 40
_SHOWN = 500


class Unequal(NamedTuple):
    """A place where an answer is not as recorded."""

    place: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        theirs, ours = (json.dumps(value)[:_SHOWN] for value in (self.theirs, self.ours))
        return f"    {self.place}\n        kube-apiserver: {theirs}\n        ours:           {ours}"


@dataclass(frozen=True)
class Judged:
    """One answer, compared."""

    session: SessionCase
    number: int
    unequal: dict[str, list[Unequal]]
    """By level; only the levels at which it was asked for."""

    @property
    def step(self) -> Step:
        """The request."""
        return self.session.steps[self.number - 1]

    @property
    def mark(self) -> str:
        """By which a known difference is named."""
        return f"{self.session.name}#{self.number}"

    @property
    def reasons_agree(self) -> bool:
        """Whether status, reason and causes are equal."""
        return not self.unequal["reasons"]

    def __str__(self) -> str:
        step = self.step
        told = f"{self.mark} {step.method} {step.path} {step.query or ''} {step.headers or ''}"
        body = f"\n    body: {json.dumps(step.body)[:_SHOWN]}" if step.body is not None else ""
        found = {str(each): None for level in self.unequal.values() for each in level}
        return "\n".join((told + body, *found))


@dataclass
class Comparison:
    """Everything that was compared."""

    judged: list[Judged] = field(default_factory=list)

    @property
    def marks(self) -> set[str]:
        """The steps whose status, reason or causes differ."""
        return {each.mark for each in self.judged if not each.reasons_agree}

    def table(self) -> Iterator[str]:
        """The figures by family, and of all."""
        yield f"{'family':20}" + "".join(f"{level:>14}" for level in LEVELS)
        families = sorted({each.session.family for each in self.judged})
        for family in families:
            yield self._line(family, [e for e in self.judged if e.session.family == family])
        yield self._line("all", self.judged)

    def _line(self, name: str, judged: list[Judged]) -> str:
        told = ""
        for level in LEVELS:
            asked = [each.unequal[level] for each in judged if level in each.unequal]
            told += f"{f'{sum(not found for found in asked)}/{len(asked)}':>14}"
        return f"{name:20}{told}"


def compare_sessions(sessions: Iterable[SessionCase]) -> Comparison:
    """Put sessions to a server that is started for them."""
    return asyncio.run(compare_with_server(sessions))


async def compare_with_server(sessions: Iterable[SessionCase]) -> Comparison:
    """Put sessions to a server that is started for them, within a running loop."""
    comparison = Comparison()
    async with ApiServer(ServerConfig(controllers="own")) as server:
        context = ssl.create_default_context(cadata=server.authority.pair.certificate.decode())
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector) as client:
            wire = Wire(client, server.url, server.admin_token)
            for session in sessions:
                await _compare_session(wire, session, comparison)
    return comparison


async def _compare_session(wire: Wire, session: SessionCase, comparison: Comparison) -> None:
    def noted(number: int, step: Step, raw: Raw, memory: Memory) -> None:
        ours = normalized(raw, memory, watch="watch" in (step.query or ""))
        if step.expect is not None:
            comparison.judged.append(Judged(session, number, judge(step.expect, ours)))

    await run(wire, session, noted)


def judge(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, list[Unequal]]:
    """Where an answer is not as recorded, by level."""
    status = list(_parts(theirs, ours, ("status",)))
    reasons = status + list(_parts(theirs, ours, ("reason", "causes")))
    everything = ("message", "details", "object", "text", "headers")
    found = {
        "status": status,
        "reasons": reasons,
        "everything": reasons + list(_parts(theirs, ours, everything)),
    }
    if "owners" in theirs:
        found["owners"] = list(_parts(theirs, ours, ("owners",)))
    return found


def _parts(theirs: dict[str, Any], ours: dict[str, Any], names: Iterable[str]) -> Iterator[Unequal]:
    for name in names:
        if name in theirs:
            yield from differences(theirs[name], ours.get(name, "<absent>"), name)


def differences(theirs: Any, ours: Any, place: str) -> list[Unequal]:
    """Where two values differ; numbers are equal by value, and booleans equal only booleans."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        pairs = [
            (f"{place}.{key}", theirs.get(key, "<absent>"), ours.get(key, "<absent>"))
            for key in sorted(theirs.keys() | ours.keys())
        ]
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = [
            (f"{place}[{index}]", one, other)
            for index, (one, other) in enumerate(zip(theirs, ours, strict=True))
        ]
    else:
        same = theirs == ours and isinstance(theirs, bool) == isinstance(ours, bool)
        return [] if same else [Unequal(place, theirs, ours)]
    found = [each for name, one, other in pairs for each in differences(one, other, name)]
    return found[:_MOST_DIFFERENCES]
