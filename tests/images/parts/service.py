"""Our image service, in this process, on a socket of its own."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from bayplan.base.flowcontrol import RetryPolicy
from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.cri.client import CriClient
from bayplan.images.cri.server import CriServerOptions, serve
from bayplan.images.platforms import Platform
from bayplan.images.settings import CriSettings, load_settings

HOST = Platform(os="linux", architecture="amd64")
CONFIG = """
version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata]
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.arm.guest_platform]
    OS = "linux"
    Architecture = "arm64"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.wcow-2019.guest_platform]
    OS = "windows"
    Architecture = "amd64"
    OSVersion = "10.0.17763"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.wcow-2022.guest_platform]
    OS = "windows"
    Architecture = "amd64"
    OSVersion = "10.0.20348"
"""
QUICK = CriServerOptions(retry=RetryPolicy(attempts=3, first_wait=0.001, longest_wait=1.0))
"""Retries come at once; timeouts are the usual ones, since a busy machine may need a while."""


def settings(directory: Path, text: str = CONFIG) -> CriSettings:
    path = directory / "config.toml"
    path.write_text(text)
    return load_settings(path, HOST)


class Service(msgspec.Struct):
    """A running service and a client of it."""

    client: CriClient
    socket: Path
    root: Path
    metrics: CollectorRegistry

    async def pull(self, image: str, handler: str = "") -> str:
        request = cri.PullImageRequest(image=spec(image, handler))
        return (await self.client.pull_image(request)).image_ref

    async def status(self, image: str, handler: str = "") -> cri.Image | None:
        answer = await self.client.image_status(
            cri.ImageStatusRequest(image=spec(image, handler), verbose=True)
        )
        return answer.image if answer.HasField("image") else None

    async def remove(self, image: str, handler: str = "") -> None:
        await self.client.remove_image(cri.RemoveImageRequest(image=spec(image, handler)))

    async def list(self, image: str = "", handler: str = "") -> list[cri.Image]:
        request = cri.ListImagesRequest(filter=cri.ImageFilter(image=spec(image, handler)))
        return list((await self.client.list_images(request)).images)


def spec(image: str, handler: str = "") -> cri.ImageSpec:
    return cri.ImageSpec(image=image, runtime_handler=handler)


@contextlib.asynccontextmanager
async def running_service(
    root: Path, configured: CriSettings, options: CriServerOptions = QUICK
) -> AsyncIterator[Service]:
    """Serve while the context lasts."""
    # A unix socket's path is short by law; pytest's directories are not.
    with tempfile.TemporaryDirectory(prefix="bayplan-") as short:
        socket = Path(short) / "cri.sock"
        async with (
            serve(socket, root, configured, options) as metrics,
            CriClient(str(socket)) as client,
        ):
            yield Service(client, socket, root, metrics)
