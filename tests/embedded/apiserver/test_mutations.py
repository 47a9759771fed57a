"""Requests changed at random: each is answered, by no failure, and none costs much time or memory.

kube-apiserver refuses some requests with a 500 of its own, and so does this server, in the same
words; what must not be is a failure that nobody foresaw. A sample is tried each time; `--long`
tries a hundred thousand.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from bayplan.base.garbage import paused_collector
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.apiserver.request import ADMIN
from bayplan.embedded.asgi import AsgiRequest, call_app
from tests.embedded.apiserver.mutations import Wire, mutated, recorded
from tests.embedded.apiserver.yardstick import SOON, yardstick
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


SAMPLE, MANY = 1500, 100_000
CLUSTER = 5000
"""Requests after which a new cluster begins, so that what is stored does not count as a leak."""
STALL = 1.0
"""Seconds of work that one request may be on a quiet machine."""
MEMORY = 512 * 1024 * 1024
"""Bytes by which the process may grow."""
FOUR_HUNDREDS = range(400, 500)
UNFORESEEN = b'"message":"Internal error occurred"'


class Outcome(NamedTuple):
    """What the server says to a request."""

    code: int
    begun: bytes


@dataclass
class Tally:
    """What came of the requests."""

    codes: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def note(self, wire: Wire, answer: Outcome, seconds: float) -> None:
        """One answer."""
        self.codes[answer.code] += 1
        self.slowest = max(self.slowest, seconds)
        unforeseen = answer.code >= 500 and UNFORESEEN in answer.begun
        stalled = seconds >= STALL and seconds >= SOON * yardstick()
        if unforeseen or stalled:
            self.failures.append(f"{answer.code} after {seconds:.2f} s of work: {wire}")


async def answer_to(plane: ControlPlane, wire: Wire) -> Outcome:
    """An answer, which is read to its end unless it may have none."""
    asked = AsgiRequest(
        wire.method, wire.path, wire.query, wire.headers, wire.body, {"peer": ADMIN}
    )
    begun = b""
    async with asyncio.timeout(PATIENCE), call_app(plane.app, asked) as reply:
        endless = "watch" in wire.query and reply.status == 200
        while not endless and (chunk := await reply.next_chunk()):
            begun = begun or chunk[:1000]
        return Outcome(reply.status, begun)


async def tried(seed: int, number: int) -> Tally:
    """So many requests, to as many clusters as that takes."""
    tally, wires = Tally(), mutated(seed, recorded())
    for start in range(0, number, CLUSTER):
        async with ControlPlane(PlaneConfig()) as plane:
            for _ in range(min(CLUSTER, number - start)):
                wire = next(wires)
                with paused_collector():  # garbage of other tests is not this request's work
                    began = time.thread_time()
                    answer = await answer_to(plane, wire)
                    seconds = time.thread_time() - began
                tally.note(wire, answer, seconds)
    return tally


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def test_no_request_breaks_the_server_or_stops_it(long: bool) -> None:
    before = _most_memory()
    tally = await tried(7, MANY if long else SAMPLE)
    print(dict(tally.codes), f"slowest {tally.slowest:.2f} s")  # noqa: T201 - for --long
    assert tally.failures == []
    assert _most_memory() - before < MEMORY
    assert tally.codes[201] > 0
    assert sum(tally.codes[code] for code in FOUR_HUNDREDS) > 0
