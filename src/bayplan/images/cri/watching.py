"""Telling watchers how far pulls have come.

The CRI has no progress, so a watcher asks beside it, on the same socket: it says which image and
handler, and hears every step of every pull of it. A watcher that reads too slowly loses steps, not
the pull its pace.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from weakref import WeakSet

from bayplan.images.cri import progress_pb2 as progress
from bayplan.images.handlers import Handlers
from bayplan.images.pull.progress import Listener, PullProgress
from bayplan.images.registry.errors import image_to_pull

_BACKLOG = 256
_Topic = tuple[str, str]


class Watchers:
    """Who wants to hear about which pull."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self._queues: dict[_Topic, WeakSet[asyncio.Queue[PullProgress]]] = {}

    @contextlib.contextmanager
    def watched(self, image: str, handler: str) -> Iterator[Listener]:
        """Give a pull somebody to report to."""
        topic = (image, handler)

        def report(step: PullProgress) -> None:
            for queue in self._queues.get(topic, ()):
                with contextlib.suppress(asyncio.QueueFull):
                    queue.put_nowait(step)

        yield report

    def watch(self, request: progress.WatchRequest) -> AsyncIterator[progress.Step]:
        """Hear the steps of an image's pulls, from this very call on."""
        handler = self._handlers.get(request.runtime_handler).name
        topic = (str(image_to_pull(request.image)), handler)
        queue: asyncio.Queue[PullProgress] = asyncio.Queue(_BACKLOG)
        self._queues.setdefault(topic, WeakSet()).add(queue)
        return self._steps(topic, queue)

    async def _steps(
        self, topic: _Topic, queue: "asyncio.Queue[PullProgress]"
    ) -> AsyncIterator[progress.Step]:
        try:
            while True:
                step = await queue.get()
                yield progress.Step(
                    digest=step.digest, phase=step.phase, done=step.done, total=step.total
                )
        finally:
            self._queues[topic].discard(queue)
            if not self._queues[topic]:
                del self._queues[topic]
