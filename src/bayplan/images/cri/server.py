"""The whole image service on its unix socket: its parts put together, opened and closed in order.

Handlers are plain coroutines from message to message; this module names them to gRPC and turns
their exceptions into status codes. Only the socket's owner and group may connect: whoever can pull
can fill the disk.
"""

import asyncio
import contextlib
import logging
import os
import socket as sockets
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn, TypeVar

import grpc
import grpc.aio
import msgspec
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry

from bayplan.base.pacing import RetryPolicy
from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.cri import progress_pb2 as progress
from bayplan.images.cri.client import CHANNEL_OPTIONS
from bayplan.images.cri.images import Images, Watchers, to_status
from bayplan.images.cri.metrics import Metrics
from bayplan.images.layers.streams import Limits
from bayplan.images.pull.puller import Puller
from bayplan.images.registry.client import RegistryClient
from bayplan.images.registry.download import Pace
from bayplan.images.registry.errors import PATIENCE, Retrier
from bayplan.images.registry.transport import Timeouts, Transport
from bayplan.images.settings import Settings
from bayplan.images.store.layout import Keeping
from bayplan.images.store.store import ImageStore


class Runtime:
    """Says who answers and which handlers there are; it runs no containers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def version(self, _request: cri.VersionRequest) -> cri.VersionResponse:
        """Introduce ourselves."""
        return cri.VersionResponse(
            version="0.1.0",
            runtime_name="bayplan",
            runtime_version=version("bayplan"),
            runtime_api_version="v1",
        )

    async def status(self, request: cri.StatusRequest) -> cri.StatusResponse:
        """Say that images can be had, and for which handlers; the empty name is the default."""
        ready = [
            cri.RuntimeCondition(type="RuntimeReady", status=True),
            cri.RuntimeCondition(
                type="NetworkReady",
                status=False,
                reason="ImagesOnly",
                message="this service holds images and runs no containers",
            ),
        ]
        names = ["", *self._settings.handlers.names()]
        return cri.StatusResponse(
            status=cri.RuntimeStatus(conditions=ready),
            runtime_handlers=[cri.RuntimeHandler(name=name) for name in names],
            info={"config": self._configuration()} if request.verbose else {},
        )

    async def list_containers(
        self, _request: cri.ListContainersRequest
    ) -> cri.ListContainersResponse:
        """List no containers: there are none."""
        return cri.ListContainersResponse()

    def _configuration(self) -> str:
        handlers = self._settings.handlers
        matchers = {name: handlers.get(name).matcher for name in handlers.names()}
        details = {"defaultRuntimeName": handlers.default, "runtimes": matchers}
        return msgspec.json.encode(details).decode()


_LOG = logging.getLogger(__name__)
_SOCKET_MODE = 0o660
_WORDS_LIMIT = 2000
_Asked = TypeVar("_Asked", bound=Message)
_Told = TypeVar("_Told", bound=Message)
_Context = grpc.aio.ServicerContext[Message, Message]
Services = list["grpc.GenericRpcHandler[Message, Message]"]


def services(images: Images, runtime: Runtime, watchers: Watchers) -> Services:
    """Name every RPC."""
    return [
        grpc.method_handlers_generic_handler(
            "runtime.v1.RuntimeService",
            {
                "Version": _unary(runtime.version, cri.VersionRequest),
                "Status": _unary(runtime.status, cri.StatusRequest),
                "ListContainers": _unary(runtime.list_containers, cri.ListContainersRequest),
            },
        ),
        grpc.method_handlers_generic_handler(
            "runtime.v1.ImageService",
            {
                "ListImages": _unary(images.list_images, cri.ListImagesRequest),
                "StreamImages": _stream(images.stream_images, cri.StreamImagesRequest),
                "ImageStatus": _unary(images.image_status, cri.ImageStatusRequest),
                "PullImage": _unary(images.pull_image, cri.PullImageRequest),
                "RemoveImage": _unary(images.remove_image, cri.RemoveImageRequest),
                "ImageFsInfo": _unary(images.image_fs_info, cri.ImageFsInfoRequest),
            },
        ),
        grpc.method_handlers_generic_handler(
            "bayplan.images.v1.Progress", {"Watch": _stream(watchers.watch, progress.WatchRequest)}
        ),
    ]


async def start_server(socket: Path, handlers: Services) -> grpc.aio.Server:
    """Listen on a unix socket; one that a dead process left behind is replaced."""
    _free(socket)
    server = grpc.aio.server(handlers=handlers, options=CHANNEL_OPTIONS)
    _bind(server, socket)
    await server.start()
    return server


def _bind(server: grpc.aio.Server, socket: Path) -> None:
    """Make the socket, for its owner and group from its first moment on.

    The umask is the whole process's, so nothing else may have a turn while it is changed.
    """
    before = os.umask(0o777 & ~_SOCKET_MODE)
    try:
        server.add_insecure_port(f"unix:{socket}")
    except RuntimeError as error:
        raise ValueError(f"cannot listen on {socket}: {error}") from error
    finally:
        os.umask(before)


def _free(socket: Path) -> None:
    if not socket.is_socket():
        if socket.exists():
            raise ValueError(f"{socket} is there and is no socket")
        socket.parent.mkdir(parents=True, exist_ok=True)
        return
    with contextlib.closing(sockets.socket(sockets.AF_UNIX)) as probe:
        if probe.connect_ex(str(socket)) == 0:
            raise ValueError(f"{socket} is served by another process")
    socket.unlink()


def _unary(
    answer: Callable[[_Asked], Awaitable[_Told]], kind: type[_Asked]
) -> "grpc.RpcMethodHandler[_Asked, _Told]":
    async def call(request: _Asked, context: _Context) -> _Told:
        try:
            return await answer(request)
        except Exception as error:  # noqa: BLE001 - everything becomes a status
            await _abort(context, error)

    return grpc.unary_unary_rpc_method_handler(
        call, request_deserializer=kind.FromString, response_serializer=_serialize
    )


def _stream(
    answer: Callable[[_Asked], AsyncIterator[_Told]], kind: type[_Asked]
) -> "grpc.RpcMethodHandler[_Asked, _Told]":
    async def call(request: _Asked, context: _Context) -> AsyncIterator[_Told]:
        try:
            messages = answer(request)
            # The caller may rely on what happens from here on.
            await context.send_initial_metadata(())
            async for message in messages:
                yield message
        except Exception as error:  # noqa: BLE001 - everything becomes a status
            await _abort(context, error)

    return grpc.unary_stream_rpc_method_handler(
        call, request_deserializer=kind.FromString, response_serializer=_serialize
    )


async def _abort(context: _Context, error: Exception) -> NoReturn:
    code, words = to_status(error)
    # It travels in a header, which clients bound.
    words = words if len(words) <= _WORDS_LIMIT else f"{words[:_WORDS_LIMIT]}…"
    if code is grpc.StatusCode.INTERNAL:
        _LOG.error("a request failed", exc_info=error)
    else:
        _LOG.info("refused: %s: %s", code.name, words)
    await context.abort(code, words)


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


_GRACE = 5.0
_TIDYING_SECONDS = 600.0


class Tuning(msgspec.Struct, frozen=True):
    """Patience and bounds; the defaults suit a node."""

    retry: RetryPolicy = PATIENCE
    timeouts: Timeouts = Timeouts()
    pace: Pace = Pace()
    limits: Limits = Limits()
    keeping: Keeping = Keeping()


DEFAULT_TUNING = Tuning()


@contextlib.asynccontextmanager
async def open_puller(
    settings: Settings, store: ImageStore, tuning: Tuning = DEFAULT_TUNING
) -> AsyncIterator[Puller]:
    """Give a puller into a store."""
    transport = Transport(tuning.timeouts)
    registry = RegistryClient(
        transport, Retrier(tuning.retry), tuning.pace, settings.hosts_directory
    )
    puller = Puller(store, registry, settings.downloads, tuning.limits)
    try:
        yield puller
    finally:
        puller.close()
        await transport.close()


@contextlib.asynccontextmanager
async def serve(
    socket: Path, root: Path, settings: Settings, tuning: Tuning = DEFAULT_TUNING
) -> AsyncIterator[CollectorRegistry]:
    """Serve the CRI on a socket while the context lasts; gives out the metrics."""
    store = ImageStore(root, tuning.keeping)
    with contextlib.closing(store):
        async with open_puller(settings, store, tuning) as puller:
            metrics = Metrics(store, settings.handlers)
            watchers = Watchers(settings.handlers)
            images = Images(settings, store, puller, metrics, watchers)
            handlers = services(images, Runtime(settings), watchers)
            server = await start_server(socket, handlers)
            tidying = asyncio.ensure_future(_tidy(store))
            try:
                yield metrics.registry
            finally:
                tidying.cancel()
                await server.stop(_GRACE)


async def _tidy(store: ImageStore) -> None:
    """Drop downloads that nobody has continued in time."""
    while True:
        await asyncio.sleep(_TIDYING_SECONDS)
        try:
            await store.trim()
        except OSError as error:
            _LOG.warning("unfinished downloads cannot be cleared away: %s", error)
