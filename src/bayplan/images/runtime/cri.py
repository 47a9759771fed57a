"""Any CRI socket as an `ImageRuntime`: messages become objects, gRPC's errors become ours.

A status of an image without an id, or with a size of 0, is refused, as by crictl and the kubelet;
in a list such an entry is kept if it has an id. A container without the handler of its image keeps
every variant of that image in use, see `bayplan.images.image_gc`.
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
    UnusableResponseError,
)

DEFAULT_TIMEOUT = 2.0
_ERRORS = {
    grpc.StatusCode.UNAVAILABLE: RuntimeUnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: RuntimeTimeoutError,
}


@dataclass(frozen=True, slots=True)
class ImageDetails:
    """An image with the runtime's verbose info, as JSON texts by name."""

    image: Image
    info: dict[str, str]


class _Default(msgspec.Struct, rename="camel"):
    default_runtime_name: str = ""


class _Config(_Default, rename="camel"):
    """The default handler in a runtime's configuration: ours at the top, containerd's inside."""

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
        """Return the runtime's name and version."""
        with _mapped_errors("Version"):
            response = await self._client.version(cri.VersionRequest(version="v1"))
        return RuntimeVersion(
            response.runtime_name, response.runtime_version, response.runtime_api_version
        )

    async def handlers(self) -> list[str]:
        """Return the names of the runtime handlers; none if the runtime does not report them."""
        with _mapped_errors("Status"):
            response = await self._client.status(cri.StatusRequest())
        return [handler.name for handler in response.runtime_handlers]

    async def default_handler(self) -> str:
        """Return the name of the default handler; empty if the runtime does not report it."""
        try:
            config = msgspec.json.decode((await self.status_info()).get("config", ""), type=_Config)
        except (RuntimeCallError, msgspec.DecodeError):
            return ""
        return config.default_runtime_name or config.containerd.default_runtime_name

    async def status_info(self) -> dict[str, str]:
        """Return the runtime's verbose info, as JSON texts by name."""
        with _mapped_errors("Status"):
            response = await self._client.status(cri.StatusRequest(verbose=True))
        return dict(response.info)

    async def list_images(self) -> list[Image]:
        """Return every image on the node, one entry for each (id, handler)."""
        with _mapped_errors("ListImages"):
            response = await self._client.list_images(cri.ListImagesRequest())
        return [_image(image) for image in response.images if image.id]

    async def image_status(self, spec: ImageSpec) -> Image | None:
        """Return the image of that name; None if it is not present."""
        details = await self.image_details(spec, verbose=False)
        return None if details is None else details.image

    async def image_details(self, spec: ImageSpec, *, verbose: bool = True) -> ImageDetails | None:
        """Return the image of that name with the runtime's verbose info."""
        request = cri.ImageStatusRequest(image=_spec(spec), verbose=verbose)
        with _mapped_errors("ImageStatus"):
            response = await self._client.image_status(request)
        if not response.HasField("image"):
            return None
        if not response.image.id or not response.image.size:
            problem = f"{spec.image!r} has id {response.image.id!r} and size {response.image.size}"
            raise UnusableResponseError("ImageStatus", problem)
        return ImageDetails(_image(response.image), dict(response.info))

    async def pull_image(
        self, spec: ImageSpec, auth: RegistryAuth | None, pod: PodIdentity | None
    ) -> str:
        """Pull an image without a time limit; can be cancelled."""
        request = cri.PullImageRequest(
            image=_spec(spec), auth=_auth(auth), sandbox_config=_pod(pod)
        )
        with _mapped_errors("PullImage"):
            response = await self._client.pull_image(request)
        if not response.image_ref:
            raise UnusableResponseError("PullImage", f"no image reference for {spec.image!r}")
        return response.image_ref

    async def remove_image(self, spec: ImageSpec) -> None:
        """Remove an image of one handler; no error if it is not present."""
        with _mapped_errors("RemoveImage"):
            await self._client.remove_image(cri.RemoveImageRequest(image=_spec(spec)))

    async def image_filesystems(self) -> list[FilesystemUsage]:
        """Return the image filesystems."""
        with _mapped_errors("ImageFsInfo"):
            response = await self._client.image_fs_info()
        return [_usage(usage) for usage in response.image_filesystems]

    async def images_in_use(self) -> set[ImageKey]:
        """Return the images of all containers, running or not."""
        with _mapped_errors("ListContainers"):
            response = await self._client.list_containers(cri.ListContainersRequest())
        return {
            ImageKey(container.image_id or container.image_ref, container.image.runtime_handler)
            for container in response.containers
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
