"""Building images: layers, configs, manifests and indexes, as an OCI layout or as plain blobs."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

from bayplan.images.registry import manifests as media_types

_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def tar_of(*members: tarfile.TarInfo | tuple[str, bytes]) -> bytes:
    """An archive of files and whatever else."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            if isinstance(member, tuple):
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
            else:
                archive.addfile(member)
    return buffer.getvalue()


def entry(name: str, kind: bytes, linkname: str = "", mode: int = 0o755) -> tarfile.TarInfo:
    """One archive member without content."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, linkname, mode
    return info


def directory(name: str, mode: int = 0o755) -> tarfile.TarInfo:
    return entry(name, tarfile.DIRTYPE, mode=mode)


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


class ImageBuilder:
    """Collects blobs; every method gives a descriptor as JSON would."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def blob(self, data: bytes, media_type: str) -> dict[str, object]:
        digest = digest_of(data)
        self.blobs[digest] = data
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def image(
        self,
        *layers: bytes,
        platform: dict[str, object] | None = None,
        user: str = "",
        docker: bool = False,
        layer_type: str = _LAYER,
    ) -> dict[str, object]:
        """An image of plain tars, stored gzipped; gives its manifest's descriptor."""
        config = {
            "architecture": "amd64",
            "os": "linux",
            **(platform or {}),
            "config": {"User": user},
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]},
        }
        types = (
            (media_types.DOCKER_CONFIG, media_types.DOCKER_MANIFEST)
            if docker
            else (media_types.OCI_CONFIG, media_types.OCI_MANIFEST)
        )
        manifest = {
            "schemaVersion": 2,
            "mediaType": types[1],
            "config": self.blob(json.dumps(config).encode(), types[0]),
            "layers": [self.blob(gzipped(layer), layer_type) for layer in layers],
        }
        return self.blob(json.dumps(manifest).encode(), types[1])

    def entry(
        self, *layers: bytes, platform: dict[str, object], **more: object
    ) -> dict[str, object]:
        """An image with its platform said, for an index."""
        return {**self.image(*layers, platform=platform), "platform": platform, **more}

    def index(self, *entries: dict[str, object], media_type: str = "") -> dict[str, object]:
        kind = media_type or media_types.OCI_INDEX
        document = {"schemaVersion": 2, "mediaType": kind, "manifests": list(entries)}
        return self.blob(json.dumps(document).encode(), kind)

    def write_layout(self, path: Path, top: dict[str, object], tag: str) -> None:
        """Write an OCI layout that skopeo can copy from."""
        blobs = path / "blobs" / "sha256"
        blobs.mkdir(parents=True, exist_ok=True)
        for digest, data in self.blobs.items():
            (blobs / digest.removeprefix("sha256:")).write_bytes(data)
        (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        named = {**top, "annotations": {"org.opencontainers.image.ref.name": tag}}
        index = {"schemaVersion": 2, "mediaType": media_types.OCI_INDEX, "manifests": [named]}
        (path / "index.json").write_text(json.dumps(index))


WINDOWS_BUILDS = ("10.0.17763.4851", "10.0.20348.1970", "10.0.26100.1742")


def windows(version: str) -> dict[str, object]:
    return {"os": "windows", "architecture": "amd64", "os.version": version}


def linux(architecture: str, variant: str = "") -> dict[str, object]:
    platform: dict[str, object] = {"os": "linux", "architecture": architecture}
    return {**platform, "variant": variant} if variant else platform
