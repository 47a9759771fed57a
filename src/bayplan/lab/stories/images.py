"""A take of the story of images: a cluster, a registry, a CRI service and an agent, for real.

The image is an index of one tiny image for each platform, made as it is asked for: same bytes, same
digests, whenever and wherever.

Nothing of it is virtual but the agent's clock, which runs some hundred times as fast as the wall's:
its rounds, five minutes apart, come every few seconds.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self

from aiohttp import web
from prometheus_client import CollectorRegistry

from bayplan.base.clock import WallClock
from bayplan.client import deletion
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import read_cluster
from bayplan.images.agent.housekeeping import PERIOD
from bayplan.images.agent.node import NodeImageOptions, serve_node
from bayplan.images.collection import CollectionPolicy
from bayplan.images.cri.server import serve
from bayplan.images.platforms import host_platform
from bayplan.images.registry import media
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import ImageSpec
from bayplan.images.settings import load_settings
from bayplan.kube.events import Event
from bayplan.kube.gates import RUNTIME_CLASS_IN_IMAGE_CRI_API, FeatureGates
from bayplan.kube.pods import Pod
from bayplan.lab.crew import Crew, muster
from bayplan.lab.live import LiveLab
from bayplan.lab.stories.story import Frame, Row

_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


class Shelf:
    """Blobs and one name for the last of them."""

    def __init__(self, architectures: Iterable[str]) -> None:
        self._blobs: dict[str, tuple[str, bytes]] = {}
        entries = [self._image(one) for one in architectures]
        index = {"schemaVersion": 2, "mediaType": media.OCI_INDEX, "manifests": entries}
        self._top = str(self._put(index, media.OCI_INDEX)["digest"])

    def _image(self, architecture: str) -> dict[str, object]:
        platform = {"os": "linux", "architecture": architecture}
        layer = _archive("which", f"for {architecture}\n".encode())
        config = {**platform, "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]}}
        manifest = {
            "schemaVersion": 2,
            "mediaType": media.OCI_MANIFEST,
            "config": self._put(config, media.OCI_CONFIG),
            "layers": [self._add(gzip.compress(layer, mtime=0), _LAYER)],
        }
        return {**self._put(manifest, media.OCI_MANIFEST), "platform": platform}

    def _put(self, document: Mapping[str, object], kind: str) -> dict[str, object]:
        return self._add(json.dumps(document).encode(), kind)

    def _add(self, data: bytes, kind: str) -> dict[str, object]:
        digest = _digest(data)
        self._blobs[digest] = kind, data
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    async def answer(self, request: web.Request) -> web.Response:
        """A manifest or a blob, by its digest; by any other name it is the index."""
        name = request.path.rpartition("/")[2]
        digest = name if name.startswith("sha256:") else self._top
        if digest not in self._blobs:
            return web.json_response({"errors": [{"code": "BLOB_UNKNOWN"}]}, status=404)
        kind, data = self._blobs[digest]
        headers = {"Content-Type": kind, "Docker-Content-Digest": digest}
        return web.Response(body=data, headers=headers)


@asynccontextmanager
async def serving(shelf: Shelf) -> AsyncIterator[str]:
    """Serve it on a free port of this machine; gives the URL."""
    app = web.Application()
    app.router.add_get("/v2/{path:.+}", shelf.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _archive(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


PODS = {"on-plain": "plain", "on-sandboxed": "sandboxed"}
"""The story's pods and the handlers of their runtime classes."""
GOES = "on-plain"
NODE = "workers-1"
_PATIENCE = 60.0
_GREEDY = CollectionPolicy(high_percent=0, low_percent=0)
_CONFIG = """
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "{hosts}"
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "plain"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.plain]
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.sandboxed.guest_platform]
    OS = "linux"
    Architecture = "{guest}"
"""


class HurriedClock(WallClock):
    """The wall's clock, so many times as fast."""

    def __init__(self, times: float) -> None:
        self._times = times
        self._start, self._origin = super().now(), super().monotonic()

    def now(self) -> datetime:
        """The date and time that it says."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Its seconds since it was made."""
        return (super().monotonic() - self._origin) * self._times

    async def sleep(self, seconds: float) -> None:
        """Return after that many of its seconds."""
        await super().sleep(seconds / self._times)


@dataclass(slots=True)
class ImageFigures:
    """What became of an image on a node."""

    wanted: dict[str, str] = field(default_factory=dict)
    """By pod, the platform of its runtime class."""
    got: dict[str, str] = field(default_factory=dict)
    """By pod, the platform of the image that it was given."""
    manifests: int = 0
    left: int = 0
    """Manifests after one pod went and its node was tidied up."""

    @property
    def served(self) -> int:
        """How many pods were given the image that their runtime class can run."""
        return sum(self.got.get(pod) == platform for pod, platform in self.wanted.items())

    @property
    def rows(self) -> tuple[Row, ...]:
        """For a table."""
        pods = (
            (f"{pod} wants {wish}, is given", self.got.get(pod, "-")) for pod, wish in _by(self)
        )
        return (
            ("manifests of the image on the node", str(self.manifests)),
            *pods,
            ("pods with the image of their class", f"{self.served} of {len(self.wanted)}"),
            (f"manifests after {GOES} went", str(self.left)),
        )

    @property
    def headline(self) -> str:
        """In a line."""
        return f"{self.served} of {len(self.wanted)} pods have their image"


def _by(figures: ImageFigures) -> list[tuple[str, str]]:
    return sorted(figures.wanted.items())


class ImageTake:
    """Two pods, one image, one node: pulled, then one of them goes."""

    def __init__(self, file: Path, gates: FeatureGates) -> None:
        self._file = file
        self._handlers = gates.enabled(RUNTIME_CLASS_IN_IMAGE_CRI_API)
        host = host_platform().architecture
        guest = "arm64" if host != "arm64" else "amd64"
        self._architectures = {"plain": host, "sandboxed": guest}
        self._stages = [self._pulled, self._collected]
        self._parts = AsyncExitStack()
        self._stack = ExitStack()
        self._at_work: asyncio.Task[object] | None = None
        wanted = {pod: f"linux/{self._architectures[one]}" for pod, one in PODS.items()}
        self.figures = ImageFigures(wanted)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._runner = stack.enter_context(asyncio.Runner())
            stack.callback(lambda: self._runner.run(self._close()))
            self._runner.run(self._open())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def length(self) -> int:
        """How many steps there are."""
        return len(self._stages)

    def step(self) -> Frame | None:
        """Pull, then tidy up."""
        return self._runner.run(self._staged(self._stages.pop(0))) if self._stages else None

    async def _staged(self, stage: Callable[[], Awaitable[Frame]]) -> Frame:
        self._at_work = asyncio.current_task()
        return await stage()

    async def _close(self) -> None:
        """End what a Ctrl-C left half done, and then everything that it uses."""
        if self._at_work is not None and not self._at_work.done():
            await _ended(self._at_work)
        await self._parts.aclose()

    async def _open(self) -> None:
        enter, push = self._parts.enter_async_context, self._parts.push_async_callback
        folder = Path(self._parts.enter_context(tempfile.TemporaryDirectory(prefix="bayplan-")))
        shelf = await enter(serving(Shelf(sorted(self._architectures.values()))))
        config = _configured(folder, shelf, self._architectures["sandboxed"])
        settings = load_settings(config, host_platform())
        await enter(serve(folder / "cri.sock", folder / "images", settings))
        self._runtime = await enter(CriRuntime(str(folder / "cri.sock"), timeout=_PATIENCE))
        self._lab = await enter(self._cluster())
        self._client = self._lab.client()
        running = asyncio.ensure_future(self._lab.run())
        push(_ended, running)
        self._clock = HurriedClock(times=200.0)
        options = NodeImageOptions(
            NODE, folder / "state", use_handlers=self._handlers, collection=_GREEDY
        )
        agent = serve_node(
            self._lab.client(), self._runtime, options, self._clock, CollectorRegistry()
        )
        push(_ended, asyncio.ensure_future(agent))

    def _cluster(self) -> LiveLab:
        crew = Crew(frozenset({"scheduler"}))
        aboard = muster(crew, read_cluster(self._file), lambda: lab.simulation.provider, live=True)
        lab = LiveLab(aboard.spec, ServerConfig(allow_privileged=True), aboard.daemons)
        return lab

    async def _pulled(self) -> Frame:
        await self._told("Pulled")
        found = await self._images()
        self.figures.manifests = self.figures.left = len(found)
        for pod, handler in PODS.items():
            self.figures.got[pod] = found.get(handler, found.get("", "nothing"))
        return self._frame("both pods run", found)

    async def _collected(self) -> Frame:
        await self._client.delete(Pod, "default", GOES, options=deletion(grace=0))
        await self._clock.sleep(2 * PERIOD)
        found = await self._images()
        self.figures.left = len(found)
        return self._frame(f"{GOES} went, and the node was tidied up", found)

    async def _told(self, reason: str) -> None:
        """Wait until every pod has such an event."""
        left = set(PODS)
        async with asyncio.timeout(_PATIENCE), self._client.watch(Event) as stream:
            async for change in stream:
                if change.object is not None and change.object.reason == reason:
                    left.discard(change.object.regarding.name)
                if not left:
                    return

    async def _images(self) -> dict[str, str]:
        """By handler, the platform of the image that is there for it."""
        found = {}
        for image in await self._runtime.list_images():
            details = await self._runtime.image_details(ImageSpec(image.id, image.handler))
            told = json.loads(details.info["info"]) if details is not None else {}
            found[image.handler] = _platform(told)
        return found

    def _frame(self, time: str, found: dict[str, str]) -> Frame:
        shown = [
            f"{handler or 'default handler'}: {platform}" for handler, platform in found.items()
        ]
        there = f"{len(found)} ({', '.join(sorted(shown)) or 'none'})"
        return Frame(time, (("manifests on the node", there),), f"manifests on the node: {there}")


def in_images(file: Path, gates: FeatureGates) -> ImageTake:
    """A take of the story of images."""
    return ImageTake(file, gates)


def _configured(folder: Path, url: str, guest: str) -> Path:
    """A CRI service's configuration: registries are asked at the shelf, and the sandboxed handler
    runs images of another platform.
    """
    hosts = folder / "certs.d" / "_default"
    hosts.mkdir(parents=True)
    (hosts / "hosts.toml").write_text(f'[host."{url}"]\n  capabilities = ["pull", "resolve"]\n')
    path = folder / "config.toml"
    path.write_text(_CONFIG.format(hosts=hosts.parent, guest=guest))
    return path


def _platform(told: dict[str, object]) -> str:
    config = told.get("imageSpec")
    spec = config if isinstance(config, dict) else {}
    return f"{spec.get('os', '?')}/{spec.get('architecture', '?')}"


async def _ended(task: asyncio.Task[object] | asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
