"""The CRI server on its unix socket: its parts put together, opened and closed in order.

RPC handlers are plain coroutines from request to response; this module registers them with gRPC and
turns their exceptions into status codes. Only the socket's owner and group may connect, because a
pull can fill the disk.
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

from bayplan.base.flowcontrol import RetryPolicy
from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.cri import progress_pb2 as progress
from bayplan.images.cri.client import CHANNEL_OPTIONS
from bayplan.images.cri.image_service import ImageService, PullWatchers, to_status
from bayplan.images.cri.metrics import CriMetrics
from bayplan.images.layers.streams import UnpackLimits
from bayplan.images.pull.puller import RegistryPuller
from bayplan.images.registry.client import RegistryClient
from bayplan.images.registry.download import MinimumRate
from bayplan.images.registry.errors import DEFAULT_RETRIES, Retrier
from bayplan.images.registry.transport import RegistryTimeouts, RegistryTransport
from bayplan.images.settings import CriSettings
from bayplan.images.store.layout import PartialDownloadLimits
from bayplan.images.store.store import ImageStore


class RuntimeService:
    """The CRI's RuntimeService: version and handlers; it runs no containers."""

    def __init__(self, settings: CriSettings) -> None:
        self._settings = settings

    async def version(self, _request: cri.VersionRequest) -> cri.VersionResponse:
        """Return the runtime's name and version."""
        return cri.VersionResponse(
            version="0.1.0",
            runtime_name="bayplan",
            runtime_version=version("bayplan"),
            runtime_api_version="v1",
        )

    async def status(self, request: cri.StatusRequest) -> cri.StatusResponse:
        """Return the conditions and the handlers; the empty name is the default one."""
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
        """Return no containers."""
        return cri.ListContainersResponse()

    def _configuration(self) -> str:
        handlers = self._settings.handlers
        matchers = {name: handlers.get(name).matcher for name in handlers.names()}
        details = {"defaultRuntimeName": handlers.default, "runtimes": matchers}
        return msgspec.json.encode(details).decode()


_LOG = logging.getLogger(__name__)
_SOCKET_MODE = 0o660
_MESSAGE_LIMIT = 2000
_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response", bound=Message)
_Context = grpc.aio.ServicerContext[Message, Message]
Services = list["grpc.GenericRpcHandler[Message, Message]"]


def rpc_handlers(images: ImageService, runtime: RuntimeService, watchers: PullWatchers) -> Services:
    """Return the gRPC handlers of all RPCs."""
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
    """Listen on a unix socket; a stale socket file is replaced."""
    _free(socket)
    server = grpc.aio.server(handlers=handlers, options=CHANNEL_OPTIONS)
    _bind(server, socket)
    await server.start()
    return server


def _bind(server: grpc.aio.Server, socket: Path) -> None:
    """Create the socket, accessible only to its owner and group from the beginning.

    The umask is that of the whole process, so there must be no await while it is changed.
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
            raise ValueError(f"{socket} exists and is not a socket")
        socket.parent.mkdir(parents=True, exist_ok=True)
        return
    with contextlib.closing(sockets.socket(sockets.AF_UNIX)) as probe:
        if probe.connect_ex(str(socket)) == 0:
            raise ValueError(f"{socket} is served by another process")
    socket.unlink()


def _unary(
    answer: Callable[[_Request], Awaitable[_Response]], kind: type[_Request]
) -> "grpc.RpcMethodHandler[_Request, _Response]":
    async def call(request: _Request, context: _Context) -> _Response:
        try:
            return await answer(request)
        except Exception as error:  # noqa: BLE001 - everything becomes a status
            await _abort(context, error)

    return grpc.unary_unary_rpc_method_handler(
        call, request_deserializer=kind.FromString, response_serializer=_serialize
    )


def _stream(
    answer: Callable[[_Request], AsyncIterator[_Response]], kind: type[_Request]
) -> "grpc.RpcMethodHandler[_Request, _Response]":
    async def call(request: _Request, context: _Context) -> AsyncIterator[_Response]:
        try:
            messages = answer(request)
            # From here on the caller receives every step.
            await context.send_initial_metadata(())
            async for message in messages:
                yield message
        except Exception as error:  # noqa: BLE001 - everything becomes a status
            await _abort(context, error)

    return grpc.unary_stream_rpc_method_handler(
        call, request_deserializer=kind.FromString, response_serializer=_serialize
    )


async def _abort(context: _Context, error: Exception) -> NoReturn:
    code, message = to_status(error)
    # It is sent in a header, whose size clients limit.
    message = message if len(message) <= _MESSAGE_LIMIT else f"{message[:_MESSAGE_LIMIT]}…"
    if code is grpc.StatusCode.INTERNAL:
        _LOG.error("request failed", exc_info=error)
    else:
        _LOG.info("request refused: %s: %s", code.name, message)
    await context.abort(code, message)


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


_GRACE = 5.0
_TRIM_PERIOD = 600.0


class CriServerOptions(msgspec.Struct, frozen=True):
    """Timeouts and limits; the defaults suit a node."""

    retry: RetryPolicy = DEFAULT_RETRIES
    timeouts: RegistryTimeouts = RegistryTimeouts()
    minimum_rate: MinimumRate = MinimumRate()
    limits: UnpackLimits = UnpackLimits()
    partial_limits: PartialDownloadLimits = PartialDownloadLimits()


DEFAULT_OPTIONS = CriServerOptions()


@contextlib.asynccontextmanager
async def open_puller(
    settings: CriSettings, store: ImageStore, options: CriServerOptions = DEFAULT_OPTIONS
) -> AsyncIterator[RegistryPuller]:
    """Yield a puller into a store."""
    transport = RegistryTransport(options.timeouts)
    registry = RegistryClient(
        transport, Retrier(options.retry), options.minimum_rate, settings.hosts_directory
    )
    puller = RegistryPuller(store, registry, settings.downloads, options.limits)
    try:
        yield puller
    finally:
        puller.close()
        await transport.close()


@contextlib.asynccontextmanager
async def serve(
    socket: Path, root: Path, settings: CriSettings, options: CriServerOptions = DEFAULT_OPTIONS
) -> AsyncIterator[CollectorRegistry]:
    """Serve the CRI on a socket while the context is open; yield the metrics."""
    store = ImageStore(root, options.partial_limits)
    with contextlib.closing(store):
        async with open_puller(settings, store, options) as puller:
            metrics = CriMetrics(store, settings.handlers)
            watchers = PullWatchers(settings.handlers)
            images = ImageService(settings, store, puller, metrics, watchers)
            handlers = rpc_handlers(images, RuntimeService(settings), watchers)
            server = await start_server(socket, handlers)
            trimming = asyncio.ensure_future(_trim_partial_downloads(store))
            try:
                yield metrics.registry
            finally:
                trimming.cancel()
                await server.stop(_GRACE)


async def _trim_partial_downloads(store: ImageStore) -> None:
    """Delete partial downloads that were not continued in time."""
    while True:
        await asyncio.sleep(_TRIM_PERIOD)
        try:
            await store.trim()
        except OSError as error:
            _LOG.warning("cannot delete partial downloads: %s", error)
