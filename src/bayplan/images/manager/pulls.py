"""A pull through the runtime: concurrency, rate limit, credentials in order, and back-off.

The rate limit does not make pulls wait: a pull without a token fails with "pull QPS exceeded" and
is retried after its back-off, as in the kubelet. A back-off ends when its key had no failure for
twice the longest wait.

The CRI reports no progress, so a pull has no time limit while something changes on the image
filesystem; if nothing has changed there for the progress deadline, the pull is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bayplan.base.clock import Clock
from bayplan.base.flowcontrol import TokenBucket, exponential_delay
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


class PullSlots:
    """Limits concurrent pulls: serial by default; parallel with or without a limit."""

    def __init__(self, *, serialize: bool = True, max_parallel: int | None = None) -> None:
        if max_parallel is not None and max_parallel < 1:
            raise ValueError(f"max parallel image pulls is {max_parallel}, must be at least 1")
        if serialize and max_parallel not in {None, 1}:
            raise ValueError("serialized image pulls cannot have a limit other than 1")
        limit = 1 if serialize else max_parallel
        self._slots = None if limit is None else asyncio.Semaphore(limit)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot, and hold it."""
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
    """Exponential back-off by key, with the cause of the last failure."""

    initial: float = INITIAL_SECONDS
    longest: float = LONGEST_SECONDS
    _entries: dict[str, _Entry] = field(default_factory=dict)

    def failed(self, key: str, now: float, cause: str) -> None:
        """Record a failure; the key's back-off begins now."""
        entry = self._live(key, now)
        failures = 1 if entry is None else entry.failures + 1
        self._entries[key] = _Entry(failures, now, cause)

    def remaining(self, key: str, now: float) -> float:
        """Return the seconds left of the key's back-off."""
        entry = self._live(key, now)
        if entry is None:
            return 0.0
        wait = exponential_delay(self.initial, self.longest, entry.failures - 1)
        return max(0.0, wait - (now - entry.failed_at))

    def cause(self, key: str) -> str:
        """Return the cause of the key's back-off."""
        entry = self._entries.get(key)
        return entry.cause if entry else ""

    def forget_expired(self, now: float) -> None:
        """Drop the keys whose back-off has ended, so that the table does not grow for ever."""
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
_SAMPLES_PER_DEADLINE = 10
_UNKNOWN = "UNKNOWN"

ProgressSample = Callable[[], Awaitable[object]]
"""Returns a value that differs from the last one if there was progress."""


class PullFailedError(Exception):
    """The pull failed with every credential; the message has all errors."""


@dataclass(frozen=True, slots=True)
class PullResult:
    """The pulled image, and the credential that was accepted."""

    key: ImageKey
    """The image as the runtime lists it: not every runtime supports handlers."""
    size: int
    seconds: float
    credential: Credential | None


@dataclass(slots=True)
class ImagePuller:
    """Pulls images through the runtime within its limits."""

    runtime: ImageRuntime
    clock: Clock
    slots: PullSlots
    bucket: TokenBucket
    progress: ProgressSample | None = None
    progress_deadline: float = DEFAULT_PROGRESS_DEADLINE

    async def pull(
        self, spec: ImageSpec, credentials: Sequence[Credential], pod: PodIdentity
    ) -> PullResult:
        """Pull an image when a slot is free; its time does not include the waiting."""
        async with self.slots.slot():
            if not self.bucket.take(self.clock.monotonic()):
                raise PullFailedError("pull QPS exceeded")
            started = self.clock.monotonic()
            image_ref, credential = await self._try_credentials(spec, credentials, pod)
            seconds = self.clock.monotonic() - started
            image = await self._pulled_image(spec)
            key = image.key if image else ImageKey(image_ref, spec.handler)
            return PullResult(key, image.size if image else 0, seconds, credential)

    async def _try_credentials(
        self, spec: ImageSpec, credentials: Sequence[Credential], pod: PodIdentity
    ) -> tuple[str, Credential | None]:
        problems = []
        for credential in credentials or (None,):
            auth = None if credential is None else credential.auth
            try:
                return await self._with_deadline(
                    self.runtime.pull_image(spec, auth, pod)
                ), credential
            except RuntimeCallError as error:
                problems.append(error.detail if error.code == _UNKNOWN else str(error))
        raise PullFailedError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    async def _pulled_image(self, spec: ImageSpec) -> Image | None:
        """Return the pulled image; None if the runtime does not report it."""
        try:
            return await self.runtime.image_status(spec)
        except RuntimeCallError:
            return None

    async def _with_deadline(self, pull: Coroutine[object, object, str]) -> str:
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
            await self.clock.sleep(self.progress_deadline / _SAMPLES_PER_DEADLINE)
            sample = await _sampled(progress)
            if sample != last:
                last, changed_at = sample, self.clock.monotonic()


async def _sampled(progress: ProgressSample) -> object:
    """Return a sample; one that fails counts as progress."""
    try:
        return await progress()
    except RuntimeCallError:
        return object()


async def _end(*tasks: asyncio.Future[str] | asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
