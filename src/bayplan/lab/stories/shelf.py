"""A registry with one image in it, on this machine: as much of the distribution API as pulls need.

The image is an index of one tiny image for each platform, made as it is asked for: same bytes, same
digests, whenever and wherever.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from bayplan.images.registry import media

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
