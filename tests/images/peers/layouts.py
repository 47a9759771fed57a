"""OCI images made on the spot: a layout on disk with one manifest for each platform."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

Platform = Mapping[str, str]
Descriptor = dict[str, object]


def windows(build: str) -> Platform:
    return {"os": "windows", "architecture": "amd64", "os.version": f"10.0.{build}"}


def linux(architecture: str = "amd64", variant: str = "") -> Platform:
    platform = {"os": "linux", "architecture": architecture}
    return platform | {"variant": variant} if variant else platform


@dataclass(frozen=True)
class Layout:
    """An OCI layout; the ids are what a runtime calls each platform's image."""

    folder: Path
    ids: tuple[str, ...]


def write_layout(folder: Path, platforms: Sequence[Platform], content: str = "hello") -> Layout:
    """Write an index of images whose only file says its platform and the content."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    manifests, ids = [], []
    for platform in platforms:
        config, manifest = _write_image(blobs, platform, f"{content} {dict(platform)}\n".encode())
        ids.append(config)
        manifests.append(manifest)
    index: dict[str, object] = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
    top = _write_blob(blobs, INDEX, json.dumps(index).encode())
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [top]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return Layout(folder, tuple(ids))


def _write_image(blobs: Path, platform: Platform, content: bytes) -> tuple[str, Descriptor]:
    layer, diff_id = _layer(content)
    config = {
        **platform,
        "config": {"User": "1000"},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }
    config_blob = _write_blob(blobs, CONFIG, json.dumps(config).encode())
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config_blob,
        "layers": [_write_blob(blobs, LAYER, layer)],
    }
    descriptor = _write_blob(blobs, MANIFEST, json.dumps(manifest).encode())
    return str(config_blob["digest"]), {**descriptor, "platform": dict(platform)}


def _layer(content: bytes) -> tuple[bytes, str]:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        entry = tarfile.TarInfo("says.txt")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    plain = tar.getvalue()
    return gzip.compress(plain, mtime=0), f"sha256:{hashlib.sha256(plain).hexdigest()}"


def _write_blob(blobs: Path, media_type: str, content: bytes) -> Descriptor:
    digest = hashlib.sha256(content).hexdigest()
    (blobs / digest).write_bytes(content)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}
