"""One pull through the runtime: in line, within the rate, with each credential in turn.

The CRI tells nothing of a pull's progress, so a pull is unbounded as long as something happens on
the disk that holds the images; if nothing has changed there for the progress deadline, the pull is
cancelled. What "something" is, is handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass

from bayplan.base.clock import Clock
from bayplan.base.pacing import TokenBucket
from bayplan.images.credentials.keyring import Credential
from bayplan.images.manager.throttle import PullLine
from bayplan.images.runtime.errors import RuntimeCallError
from bayplan.images.runtime.objects import Image, ImageKey, ImageRuntime, ImageSpec, PodIdentity

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
