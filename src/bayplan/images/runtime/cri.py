"""Any CRI socket as an `ImageRuntime`: messages become objects, gRPC's errors become ours.

A status that no client can use (an image without an id, or with a size of 0) is refused, as crictl
and the kubelet refuse it; in a list such an entry is kept as long as it has an id. A container that
does not say for which handler its image was pulled keeps every variant of that image in use, see
`bayplan.images.collection`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import grpc
import grpc.aio
import msgspec

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.cri.client import CriClient
from bayplan.images.runtime.objects import (
    FilesystemUsage,
    Image,
    ImageKey,
    ImageSpec,
    PodIdentity,
    RegistryAuth,
    RuntimeCallError,
    RuntimeTimeoutError,
    RuntimeUnavailableError,
    RuntimeVersion,
    UnusableAnswerError,
)

DEFAULT_TIMEOUT = 2.0
_ERRORS = {
    grpc.StatusCode.UNAVAILABLE: RuntimeUnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: RuntimeTimeoutError,
}


@dataclass(frozen=True, slots=True)
class ImageDetails:
    """An image with whatever else the runtime tells of it, as JSON texts by name."""

    image: Image
    info: dict[str, str]


class _Default(msgspec.Struct, rename="camel"):
    default_runtime_name: str = ""


class _Config(_Default, rename="camel"):
    """As much of a runtime's configuration as is read: ours says it outside, containerd inside."""

    containerd: _Default = msgspec.field(default_factory=_Default)


class CriRuntime:
    """A connection to one CRI socket; an asynchronous context manager."""

    def __init__(self, socket: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.socket = socket
        self._client = CriClient(socket, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.close()

    async def version(self) -> RuntimeVersion:
        """Who answers on the socket."""
        with _mapped_errors("Version"):
            answer = await self._client.version(cri.VersionRequest(version="v1"))
        return RuntimeVersion(
            answer.runtime_name, answer.runtime_version, answer.runtime_api_version
        )

    async def handlers(self) -> list[str]:
        """The runtime handlers that the runtime knows; none if it does not say."""
        with _mapped_errors("Status"):
            answer = await self._client.status(cri.StatusRequest())
        return [handler.name for handler in answer.runtime_handlers]

    async def default_handler(self) -> str:
        """The name of the default handler, if the runtime tells it; else nothing."""
        try:
            told = msgspec.json.decode((await self.status_info()).get("config", ""), type=_Config)
        except (RuntimeCallError, msgspec.DecodeError):
            return ""
        return told.default_runtime_name or told.containerd.default_runtime_name

    async def status_info(self) -> dict[str, str]:
        """Whatever else the runtime tells of itself, as JSON texts by name."""
        with _mapped_errors("Status"):
            answer = await self._client.status(cri.StatusRequest(verbose=True))
        return dict(answer.info)

    async def list_images(self) -> list[Image]:
        """Every image on the node, one entry for each (id, handler)."""
        with _mapped_errors("ListImages"):
            answer = await self._client.list_images(cri.ListImagesRequest())
        return [_image(image) for image in answer.images if image.id]

    async def image_status(self, spec: ImageSpec) -> Image | None:
        """The image so named, or None if the runtime does not hold it."""
        details = await self.image_details(spec, verbose=False)
        return None if details is None else details.image

    async def image_details(self, spec: ImageSpec, *, verbose: bool = True) -> ImageDetails | None:
        """The image so named with all that the runtime tells of it."""
        request = cri.ImageStatusRequest(image=_spec(spec), verbose=verbose)
        with _mapped_errors("ImageStatus"):
            answer = await self._client.image_status(request)
        if not answer.HasField("image"):
            return None
        if not answer.image.id or not answer.image.size:
            problem = f"{spec.image!r} has id {answer.image.id!r} and size {answer.image.size}"
            raise UnusableAnswerError("ImageStatus", problem)
        return ImageDetails(_image(answer.image), dict(answer.info))

    async def pull_image(
        self, spec: ImageSpec, auth: RegistryAuth | None, pod: PodIdentity | None
    ) -> str:
        """Pull an image; takes as long as it takes, and can be cancelled."""
        request = cri.PullImageRequest(
            image=_spec(spec), auth=_auth(auth), sandbox_config=_pod(pod)
        )
        with _mapped_errors("PullImage"):
            answer = await self._client.pull_image(request)
        if not answer.image_ref:
            raise UnusableAnswerError("PullImage", f"no image reference for {spec.image!r}")
        return answer.image_ref

    async def remove_image(self, spec: ImageSpec) -> None:
        """Remove an image of one handler; no error if it is not there."""
        with _mapped_errors("RemoveImage"):
            await self._client.remove_image(cri.RemoveImageRequest(image=_spec(spec)))

    async def image_filesystems(self) -> list[FilesystemUsage]:
        """The filesystems that hold images."""
        with _mapped_errors("ImageFsInfo"):
            answer = await self._client.image_fs_info()
        return [_usage(usage) for usage in answer.image_filesystems]

    async def images_in_use(self) -> set[ImageKey]:
        """The images that containers, running or not, were made from."""
        with _mapped_errors("ListContainers"):
            answer = await self._client.list_containers(cri.ListContainersRequest())
        return {
            ImageKey(container.image_id or container.image_ref, container.image.runtime_handler)
            for container in answer.containers
        }


@contextmanager
def _mapped_errors(call: str) -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        kind = _ERRORS.get(error.code(), RuntimeCallError)
        raise kind(call, error.code().name, error.details() or "no details") from error


def _spec(spec: ImageSpec) -> cri.ImageSpec:
    return cri.ImageSpec(
        image=spec.image,
        runtime_handler=spec.handler,
        annotations=spec.annotations,
        user_specified_image=spec.user_specified_image,
    )


def _auth(auth: RegistryAuth | None) -> cri.AuthConfig | None:
    if auth is None:
        return None
    return cri.AuthConfig(
        username=auth.username,
        password=auth.password,
        auth=auth.auth,
        server_address=auth.server_address,
        identity_token=auth.identity_token,
        registry_token=auth.registry_token,
    )


def _pod(pod: PodIdentity | None) -> cri.PodSandboxConfig | None:
    if pod is None:
        return None
    metadata = cri.PodSandboxMetadata(name=pod.name, namespace=pod.namespace, uid=pod.uid)
    return cri.PodSandboxConfig(metadata=metadata)


def _image(image: cri.Image) -> Image:
    return Image(
        id=image.id,
        tags=tuple(image.repo_tags),
        digests=tuple(image.repo_digests),
        size=image.size,
        handler=image.spec.runtime_handler,
        pinned=image.pinned,
        uid=image.uid.value if image.HasField("uid") else None,
        username=image.username,
    )


def _usage(usage: cri.FilesystemUsage) -> FilesystemUsage:
    return FilesystemUsage(
        mountpoint=usage.fs_id.mountpoint,
        used_bytes=usage.used_bytes.value,
        inodes_used=usage.inodes_used.value,
        timestamp_ns=usage.timestamp,
    )
