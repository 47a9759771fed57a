"""A cluster is recorded as far as it answers, for as long as is wanted; what is wrong is said."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from bayplan.base.clock import Clock, WallClock
from bayplan.client import Client
from bayplan.observe.kinds import OBSERVED, WORKLOAD_KINDS
from bayplan.observe.recorder import ClusterRecorder
from bayplan.recordings import ObjectIdentity, RecordedObject, Recording, RecordingWriter
from tests.client.scripted import Scripted, event, page, refusal, stream
from tests.patience import PATIENCE

NODE = {"metadata": {"name": "n1", "uid": "u1", "resourceVersion": "1"}}
SYNC_TIMEOUT = 12.5
KINDS = len((*OBSERVED, *WORKLOAD_KINDS)) + 2
"""Recorded kinds: with events and the autoscaler's status."""
Answering = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def answering(broken: str, *news: object) -> Answering:
    """A server that cannot tell one kind, and has one node, of which there is news."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        of_nodes = request.path == "/api/v1/nodes"
        if request.path.endswith(broken):
            handler = refusal(500, "InternalError", "a conversion webhook does not answer")
        elif "sendInitialEvents" in request.query:
            handler = refusal(422, "Invalid", "sendInitialEvents is forbidden")
        elif "watch" in request.query:
            handler = stream(*news if of_nodes else (), hold=asyncio.Event())
        else:
            handler = page(*[NODE] if of_nodes else [])
        return await handler(request)

    return answer


class OthersSynced(WallClock):
    """A clock on which the sync timeout ends when all kinds but one are being watched."""

    def __init__(self, server: Scripted) -> None:
        self._server = server

    async def sleep(self, seconds: float) -> None:
        if seconds != SYNC_TIMEOUT:
            return await super().sleep(seconds)
        while len(self._watched()) < KINDS - 1:
            self._server.news.clear()
            await self._server.news.wait()
        return None

    def _watched(self) -> set[str]:
        """Return what is watched: an informer has synced before it watches."""
        asked = [one for one in self._server.requests if "watch" in one.query]
        return {one.path for one in asked if "sendInitialEvents" not in one.query}


def opening(
    path: Path, kind: type[RecordingWriter] = RecordingWriter
) -> Callable[..., RecordingWriter]:
    return lambda clock: kind(path, name="test", start=clock.now())


async def test_a_kind_that_cannot_be_told_does_not_hold_the_others(tmp_path: Path) -> None:
    told: list[str] = []
    opened = opening(tmp_path / "r.bpr")
    recorder = ClusterRecorder(opened, report=told.append, sync_timeout=SYNC_TIMEOUT)
    async with Scripted(answering("/queues")) as server:
        others = OthersSynced(server)
        async with Client(server.access, clock=others) as client, asyncio.timeout(PATIENCE):
            await recorder.lead(client, 0.1)
    with Recording(tmp_path / "r.bpr") as recording:
        assert ObjectIdentity("v1", "Node", "n1") in recording.state_at(0.0).objects
    (said,) = told
    assert said.startswith("queues")
    assert "not recorded until it can be listed" in said


async def test_the_time_to_record_begins_with_the_recording(tmp_path: Path) -> None:
    recorder = ClusterRecorder(opening(tmp_path / "r.bpr"), sync_timeout=0.5)
    async with Scripted(answering("/queues")) as server, Client(server.access) as client:
        async with asyncio.timeout(PATIENCE):
            await recorder.lead(client, 0.1)
    assert recorder.has_started
    with Recording(tmp_path / "r.bpr") as recording:
        assert recording.seconds >= 0.1


class _FullDiskWriter(RecordingWriter):
    """On a disk that is full when the first news comes."""

    def record(self, at: float, obj: RecordedObject) -> bool:
        if at > 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().record(at, obj)


async def test_a_full_disk_is_said_as_what_it_is(tmp_path: Path) -> None:
    began = asyncio.Event()

    def opened(clock: Clock) -> RecordingWriter:
        began.set()
        return _FullDiskWriter(tmp_path / "r.bpr", name="test", start=clock.now())

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        is_watch = "watch" in request.query and "sendInitialEvents" not in request.query
        if is_watch and request.path == "/api/v1/nodes":
            await began.wait()
        newer = {"metadata": {**NODE["metadata"], "resourceVersion": "2", "labels": {"a": "b"}}}
        return await answering("/nothing", event("MODIFIED", newer))(request)

    async with Scripted(answer) as server, Client(server.access) as client:
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(OSError, match="No space left"):
                await ClusterRecorder(opened).lead(client)
    with Recording(tmp_path / "r.bpr") as recording:
        assert recording.truncated_bytes == 0
