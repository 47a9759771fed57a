"""Runs of the story of images: a real cluster, registry, CRI service and node agent.

The image is an index of one tiny image for each platform, with reproducible digests.

Only the agent's clock is not real: it runs 200 times as fast as the system clock, so that its
rounds, five minutes apart, come every few seconds.
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
from bayplan.images.agent.image_gc_loop import PERIOD
from bayplan.images.agent.node import NodeImageOptions, serve_node
from bayplan.images.cri.server import serve
from bayplan.images.image_gc import ImageGCPolicy
from bayplan.images.platforms import host_platform
from bayplan.images.registry import manifests as media_types
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import ImageSpec
from bayplan.images.settings import load_settings
from bayplan.kube.events import Event
from bayplan.kube.gates import RUNTIME_CLASS_IN_IMAGE_CRI_API, FeatureGates
from bayplan.kube.pods import Pod
from bayplan.lab.daemons import LabDaemons, prepare_daemons
from bayplan.lab.live import LiveLab
from bayplan.lab.stories.story import Row, StoryFrame

_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


class StoryRegistry:
    """A registry with the blobs of one image index."""

    def __init__(self, architectures: Iterable[str]) -> None:
        self._blobs: dict[str, tuple[str, bytes]] = {}
        entries = [self._image(architecture) for architecture in architectures]
        index = {"schemaVersion": 2, "mediaType": media_types.OCI_INDEX, "manifests": entries}
        self._index_digest = str(self._put(index, media_types.OCI_INDEX)["digest"])

    def _image(self, architecture: str) -> dict[str, object]:
        platform = {"os": "linux", "architecture": architecture}
        layer = _archive("which", f"for {architecture}\n".encode())
        config = {**platform, "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]}}
        manifest = {
            "schemaVersion": 2,
            "mediaType": media_types.OCI_MANIFEST,
            "config": self._put(config, media_types.OCI_CONFIG),
            "layers": [self._add(gzip.compress(layer, mtime=0), _LAYER)],
        }
        return {**self._put(manifest, media_types.OCI_MANIFEST), "platform": platform}

    def _put(self, document: Mapping[str, object], kind: str) -> dict[str, object]:
        return self._add(json.dumps(document).encode(), kind)

    def _add(self, data: bytes, kind: str) -> dict[str, object]:
        digest = _digest(data)
        self._blobs[digest] = kind, data
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    async def answer(self, request: web.Request) -> web.Response:
        """Serve a manifest or a blob by its digest; any other name is the index."""
        name = request.path.rpartition("/")[2]
        digest = name if name.startswith("sha256:") else self._index_digest
        if digest not in self._blobs:
            return web.json_response({"errors": [{"code": "BLOB_UNKNOWN"}]}, status=404)
        kind, data = self._blobs[digest]
        headers = {"Content-Type": kind, "Docker-Content-Digest": digest}
        return web.Response(body=data, headers=headers)


@asynccontextmanager
async def serve_registry(registry: StoryRegistry) -> AsyncIterator[str]:
    """Serve the registry on a free port of this machine; yield its URL."""
    app = web.Application()
    app.router.add_get("/v2/{path:.+}", registry.answer)
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
DELETED_POD = "on-plain"
NODE = "workers-1"
_TIMEOUT = 60.0
_COLLECT_ALL = ImageGCPolicy(high_percent=0, low_percent=0)
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


class FastClock(WallClock):
    """The system clock, a number of times as fast."""

    def __init__(self, times: float) -> None:
        self._times = times
        self._start, self._origin = super().now(), super().monotonic()

    def now(self) -> datetime:
        """Return the date and time of this clock."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return the seconds since this clock was created."""
        return (super().monotonic() - self._origin) * self._times

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds of this clock."""
        await super().sleep(seconds / self._times)


@dataclass(slots=True)
class ImageFigures:
    """The figures of an image on a node."""

    wanted: dict[str, str] = field(default_factory=dict)
    """By pod, the platform of its runtime class."""
    got: dict[str, str] = field(default_factory=dict)
    """By pod, the platform of the image that it got."""
    manifests: int = 0
    left: int = 0
    """Manifests after one pod was deleted and images were collected."""

    @property
    def served(self) -> int:
        """The number of pods that got the image of their runtime class."""
        return sum(self.got.get(pod) == platform for pod, platform in self.wanted.items())

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of a table."""
        pods = (
            (f"{pod} needs {platform}, gets", self.got.get(pod, "-"))
            for pod, platform in sorted(self.wanted.items())
        )
        return (
            ("manifests of the image on the node", str(self.manifests)),
            *pods,
            ("pods with the image of their runtime class", f"{self.served} of {len(self.wanted)}"),
            (f"manifests after {DELETED_POD} was deleted", str(self.left)),
        )

    @property
    def headline(self) -> str:
        """A summary in one line."""
        return f"{self.served} of {len(self.wanted)} pods have their image"


class ImageRun:
    """Two pods, one image, one node: the image is pulled, then one pod is deleted."""

    def __init__(self, file: Path, gates: FeatureGates) -> None:
        self._file = file
        self._handlers = gates.enabled(RUNTIME_CLASS_IN_IMAGE_CRI_API)
        host = host_platform().architecture
        guest = "arm64" if host != "arm64" else "amd64"
        self._architectures = {"plain": host, "sandboxed": guest}
        self._stages = [self._pull, self._collect]
        self._resources = AsyncExitStack()
        self._stack = ExitStack()
        self._stage_task: asyncio.Task[object] | None = None
        wanted = {pod: f"linux/{self._architectures[handler]}" for pod, handler in PODS.items()}
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
        """The number of steps."""
        return len(self._stages)

    def step(self) -> StoryFrame | None:
        """Pull the image, then collect it."""
        return self._runner.run(self._run_stage(self._stages.pop(0))) if self._stages else None

    async def _run_stage(self, stage: Callable[[], Awaitable[StoryFrame]]) -> StoryFrame:
        self._stage_task = asyncio.current_task()
        return await stage()

    async def _close(self) -> None:
        """End a stage that Ctrl-C interrupted, and then everything that it uses."""
        if self._stage_task is not None and not self._stage_task.done():
            await _cancel(self._stage_task)
        await self._resources.aclose()

    async def _open(self) -> None:
        enter, push = self._resources.enter_async_context, self._resources.push_async_callback
        folder = Path(self._resources.enter_context(tempfile.TemporaryDirectory(prefix="bayplan-")))
        registry = await enter(serve_registry(StoryRegistry(sorted(self._architectures.values()))))
        config = _write_config(folder, registry, self._architectures["sandboxed"])
        settings = load_settings(config, host_platform())
        await enter(serve(folder / "cri.sock", folder / "images", settings))
        self._runtime = await enter(CriRuntime(str(folder / "cri.sock"), timeout=_TIMEOUT))
        self._lab = await enter(self._cluster())
        self._client = self._lab.client()
        running = asyncio.ensure_future(self._lab.run())
        push(_cancel, running)
        self._clock = FastClock(times=200.0)
        options = NodeImageOptions(
            NODE, folder / "state", use_handlers=self._handlers, collection=_COLLECT_ALL
        )
        agent = serve_node(
            self._lab.client(), self._runtime, options, self._clock, CollectorRegistry()
        )
        push(_cancel, asyncio.ensure_future(agent))

    def _cluster(self) -> LiveLab:
        daemons = LabDaemons(frozenset({"scheduler"}))
        prepared = prepare_daemons(
            daemons, read_cluster(self._file), lambda: lab.simulation.provider, live=True
        )
        lab = LiveLab(prepared.spec, ServerConfig(allow_privileged=True), prepared.daemons)
        return lab

    async def _pull(self) -> StoryFrame:
        await self._wait_for_events("Pulled")
        found = await self._images()
        self.figures.manifests = self.figures.left = len(found)
        for pod, handler in PODS.items():
            self.figures.got[pod] = found.get(handler, found.get("", "nothing"))
        return self._frame("both pods run", found)

    async def _collect(self) -> StoryFrame:
        await self._client.delete(Pod, "default", DELETED_POD, options=deletion(grace=0))
        await self._clock.sleep(2 * PERIOD)
        found = await self._images()
        self.figures.left = len(found)
        return self._frame(f"{DELETED_POD} was deleted and its image collected", found)

    async def _wait_for_events(self, reason: str) -> None:
        """Wait until every pod has an event with that reason."""
        left = set(PODS)
        async with asyncio.timeout(_TIMEOUT), self._client.watch(Event) as stream:
            async for change in stream:
                if change.object is not None and change.object.reason == reason:
                    left.discard(change.object.regarding.name)
                if not left:
                    return

    async def _images(self) -> dict[str, str]:
        """Return the platform of the image on the node, by handler."""
        found = {}
        for image in await self._runtime.list_images():
            details = await self._runtime.image_details(ImageSpec(image.id, image.handler))
            info = json.loads(details.info["info"]) if details is not None else {}
            found[image.handler] = _platform(info)
        return found

    def _frame(self, time: str, found: dict[str, str]) -> StoryFrame:
        shown = [
            f"{handler or 'default handler'}: {platform}" for handler, platform in found.items()
        ]
        summary = f"{len(found)} ({', '.join(sorted(shown)) or 'none'})"
        return StoryFrame(
            time, (("manifests on the node", summary),), f"manifests on the node: {summary}"
        )


def in_images(file: Path, gates: FeatureGates) -> ImageRun:
    """Start a run of the story of images."""
    return ImageRun(file, gates)


def _write_config(folder: Path, url: str, guest: str) -> Path:
    """Write the configuration of the CRI service: the mirror for all registries, and a sandboxed
    handler for another platform.
    """
    hosts = folder / "certs.d" / "_default"
    hosts.mkdir(parents=True)
    (hosts / "hosts.toml").write_text(f'[host."{url}"]\n  capabilities = ["pull", "resolve"]\n')
    path = folder / "config.toml"
    path.write_text(_CONFIG.format(hosts=hosts.parent, guest=guest))
    return path


def _platform(info: dict[str, object]) -> str:
    config = info.get("imageSpec")
    spec = config if isinstance(config, dict) else {}
    return f"{spec.get('os', '?')}/{spec.get('architecture', '?')}"


async def _cancel(task: asyncio.Task[object] | asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
