"""A typed client of any CRI socket: ours, containerd's, CRI-O's.

One method per RPC, with the generated messages as requests and responses, so that callers need not
know gRPC. Errors are grpc's `AioRpcError`; every call but a pull has a timeout.
"""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Protocol, Self, TypeVar, cast

import grpc.aio

from bayplan.images.cri import cri_pb2 as cri

MESSAGE_LIMIT = 16 * 1024 * 1024
CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    # A runtime that restarts is back in seconds; gRPC would wait for minutes.
    ("grpc.max_reconnect_backoff_ms", 2000),
    # The socket's path means nothing as an authority, and some servers refuse it.
    ("grpc.default_authority", "localhost"),
]
IMAGES = "/runtime.v1.ImageService/"
RUNTIME = "/runtime.v1.RuntimeService/"


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name

    @classmethod
    def FromString(cls, data: bytes) -> Self: ...  # noqa: N802 - protobuf's name


_Response = TypeVar("_Response", bound=_Message)


def socket_target(socket: str) -> str:
    """Return the gRPC target of a path or of any URL that crictl accepts."""
    if socket.startswith("unix://"):
        return f"unix:{socket.removeprefix('unix://')}"
    return f"unix:{socket}" if socket.startswith("/") else socket


class CriClient:
    """A connection to one CRI socket; an asynchronous context manager."""

    def __init__(self, socket: str, timeout: float = 30.0) -> None:
        self._channel = grpc.aio.insecure_channel(socket_target(socket), options=CHANNEL_OPTIONS)
        self._timeout = timeout

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close(None)

    async def version(self, request: cri.VersionRequest) -> cri.VersionResponse:
        """Return the runtime's name and version."""
        return await self._call_with_timeout(f"{RUNTIME}Version", request, cri.VersionResponse)

    async def status(self, request: cri.StatusRequest) -> cri.StatusResponse:
        """Return the runtime's conditions and handlers."""
        return await self._call_with_timeout(f"{RUNTIME}Status", request, cri.StatusResponse)

    async def list_containers(
        self, request: cri.ListContainersRequest
    ) -> cri.ListContainersResponse:
        """Return the containers, with the images in use."""
        return await self._call_with_timeout(
            f"{RUNTIME}ListContainers", request, cri.ListContainersResponse
        )

    async def list_images(self, request: cri.ListImagesRequest) -> cri.ListImagesResponse:
        """Return images in one message."""
        return await self._call_with_timeout(f"{IMAGES}ListImages", request, cri.ListImagesResponse)

    async def stream_images(
        self, request: cri.StreamImagesRequest
    ) -> AsyncIterator[cri.StreamImagesResponse]:
        """Return images in as many messages as they need."""
        call = self._channel.unary_stream(
            f"{IMAGES}StreamImages",
            cri.StreamImagesRequest.SerializeToString,
            cri.StreamImagesResponse.FromString,
        )
        async for batch in call(request, timeout=self._timeout):
            yield batch

    async def image_status(self, request: cri.ImageStatusRequest) -> cri.ImageStatusResponse:
        """Return the status of an image; the response has no image if there is none."""
        return await self._call_with_timeout(
            f"{IMAGES}ImageStatus", request, cri.ImageStatusResponse
        )

    async def pull_image(
        self, request: cri.PullImageRequest, deadline: float | None = None
    ) -> cri.PullImageResponse:
        """Pull an image; without a deadline by default, since images may be huge."""
        return await self._call(f"{IMAGES}PullImage", request, cri.PullImageResponse, deadline)

    async def remove_image(self, request: cri.RemoveImageRequest) -> cri.RemoveImageResponse:
        """Remove an image; removing an absent one succeeds."""
        return await self._call_with_timeout(
            f"{IMAGES}RemoveImage", request, cri.RemoveImageResponse
        )

    async def image_fs_info(self) -> cri.ImageFsInfoResponse:
        """Return the usage of the image filesystems."""
        request = cri.ImageFsInfoRequest()
        return await self._call_with_timeout(
            f"{IMAGES}ImageFsInfo", request, cri.ImageFsInfoResponse
        )

    async def _call_with_timeout(
        self, method: str, request: _Message, response: type[_Response]
    ) -> _Response:
        return await self._call(method, request, response, self._timeout)

    async def _call(
        self, method: str, request: _Message, response: type[_Response], deadline: float | None
    ) -> _Response:
        call = self._channel.unary_unary(
            method, type(request).SerializeToString, response.FromString
        )
        return cast("_Response", await call(request, timeout=deadline))
