"""One pull through the runtime: in line, within the rate, with each credential, backing off.

The rate never makes anybody wait: a pull for which there is no token fails with
"pull QPS exceeded" and is tried again after its back-off, as the kubelet does it.

A key that has been quiet for twice the longest wait starts over. Time is handed in.

The CRI tells nothing of a pull's progress, so a pull is unbounded as long as something happens on
the disk that holds the images; if nothing has changed there for the progress deadline, the pull is
cancelled. What "something" is, is handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bayplan.base.clock import Clock
from bayplan.base.pacing import TokenBucket, doubled
from bayplan.images.credentials.keyring import Credential
from bayplan.images.runtime.objects import (
    Image,
    ImageKey,
    ImageRuntime,
    ImageSpec,
    PodIdentity,
    RuntimeCallError,
)

DEFAULT_QPS = 5.0
DEFAULT_BURST = 10


class PullLine:
    """Serial pulls by default, first come first served; parallel with or without a limit."""

    def __init__(self, *, serialize: bool = True, max_parallel: int | None = None) -> None:
        if max_parallel is not None and max_parallel < 1:
            raise ValueError(f"max parallel image pulls is {max_parallel}, must be at least 1")
        if serialize and max_parallel not in {None, 1}:
            raise ValueError("serialized image pulls cannot have a limit other than 1")
        limit = 1 if serialize else max_parallel
        self._slots = None if limit is None else asyncio.Semaphore(limit)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for one's turn, and hold it."""
        if self._slots is None:
            yield
            return
        async with self._slots:
            yield


INITIAL_SECONDS = 10.0
LONGEST_SECONDS = 300.0


@dataclass(slots=True)
class _Entry:
    failures: int
    failed_at: float
    cause: str


@dataclass(slots=True)
class KeyedBackoff:
    """Who has to wait, until when, and because of what."""

    initial: float = INITIAL_SECONDS
    longest: float = LONGEST_SECONDS
    _entries: dict[str, _Entry] = field(default_factory=dict)

    def failed(self, key: str, now: float, cause: str) -> None:
        """Note a failure; the key's wait begins now."""
        entry = self._live(key, now)
        failures = 1 if entry is None else entry.failures + 1
        self._entries[key] = _Entry(failures, now, cause)

    def remaining(self, key: str, now: float) -> float:
        """How many seconds the key has yet to wait."""
        entry = self._live(key, now)
        if entry is None:
            return 0.0
        wait = doubled(self.initial, self.longest, entry.failures - 1)
        return max(0.0, wait - (now - entry.failed_at))

    def cause(self, key: str) -> str:
        """Why the key waits."""
        entry = self._entries.get(key)
        return entry.cause if entry else ""

    def forget_expired(self, now: float) -> None:
        """Drop the keys that would start over anyway, so that the table cannot grow for ever."""
        for key in [key for key in self._entries if self._live(key, now) is None]:
            del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def _live(self, key: str, now: float) -> _Entry | None:
        entry = self._entries.get(key)
        if entry is None or now - entry.failed_at > 2 * self.longest:
            return None
        return entry


DEFAULT_PROGRESS_DEADLINE = 600.0
_LOOKS_PER_DEADLINE = 10
_UNKNOWN = "UNKNOWN"

ProgressSample = Callable[[], Awaitable[object]]
"""Gives something that differs from the last time if anything has happened."""


class PullFailedError(Exception):
    """No credential opened the image, or something else went wrong; the message says all of it."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull brought, and by which credential."""

    key: ImageKey
    """The image as the runtime lists it: not every runtime knows the handler that it was asked."""
    size: int
    seconds: float
    credential: Credential | None


@dataclass(slots=True)
class Puller:
    """Pulls images, as fast and as many at once as it may."""

    runtime: ImageRuntime
    clock: Clock
    line: PullLine
    bucket: TokenBucket
    progress: ProgressSample | None = None
    progress_deadline: float = DEFAULT_PROGRESS_DEADLINE

    async def pull(
        self, spec: ImageSpec, credentials: Sequence[Credential], pod: PodIdentity
    ) -> Pulled:
        """Pull an image when it is one's turn; the time does not include the waiting."""
        async with self.line.turn():
            if not self.bucket.take(self.clock.monotonic()):
                raise PullFailedError("pull QPS exceeded")
            started = self.clock.monotonic()
            image_ref, credential = await self._try_in_turn(spec, credentials, pod)
            seconds = self.clock.monotonic() - started
            image = await self._pulled_image(spec)
            key = image.key if image else ImageKey(image_ref, spec.handler)
            return Pulled(key, image.size if image else 0, seconds, credential)

    async def _try_in_turn(
        self, spec: ImageSpec, credentials: Sequence[Credential], pod: PodIdentity
    ) -> tuple[str, Credential | None]:
        problems = []
        for credential in credentials or (None,):
            auth = None if credential is None else credential.auth
            try:
                return await self._watched(self.runtime.pull_image(spec, auth, pod)), credential
            except RuntimeCallError as error:
                problems.append(error.detail if error.code == _UNKNOWN else str(error))
        raise PullFailedError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    async def _pulled_image(self, spec: ImageSpec) -> Image | None:
        """What was pulled; a runtime that will not say does not fail the pull."""
        try:
            return await self.runtime.image_status(spec)
        except RuntimeCallError:
            return None

    async def _watched(self, pull: Coroutine[object, object, str]) -> str:
        if self.progress is None or self.progress_deadline <= 0:
            return await pull
        task = asyncio.ensure_future(pull)
        watch = asyncio.ensure_future(self._until_stalled(self.progress))
        try:
            await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise PullFailedError(f"no progress for {self.progress_deadline:g} s")
            return task.result()
        finally:
            await _end(task, watch)

    async def _until_stalled(self, progress: ProgressSample) -> None:
        last, changed_at = await _sampled(progress), self.clock.monotonic()
        while self.clock.monotonic() - changed_at < self.progress_deadline:
            await self.clock.sleep(self.progress_deadline / _LOOKS_PER_DEADLINE)
            sample = await _sampled(progress)
            if sample != last:
                last, changed_at = sample, self.clock.monotonic()


async def _sampled(progress: ProgressSample) -> object:
    """What cannot be told counts as progress: only a known standstill may end a pull."""
    try:
        return await progress()
    except RuntimeCallError:
        return object()


async def _end(*tasks: asyncio.Future[str] | asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
