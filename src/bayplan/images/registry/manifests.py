"""Descriptors, indexes, manifests and configs of images, OCI's and Docker's.

Both formats have the same fields with different media types. All of them come over a network, so
they are decoded strictly, limited in size and number, and refused if their type is unknown.
"""

from typing import TypeVar

import msgspec

from bayplan.images.platforms import Platform
from bayplan.images.registry.errors import IntegrityError
from bayplan.kube.imagereferences import is_digest

MANIFEST_LIMIT = 4 * 1024 * 1024
CONFIG_LIMIT = 8 * 1024 * 1024
ENTRY_LIMIT = 1000
LAYER_LIMIT = 500
USER_LIMIT = 256

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
INDEX_TYPES = frozenset((OCI_INDEX, DOCKER_INDEX))
MANIFEST_TYPES = frozenset((OCI_MANIFEST, DOCKER_MANIFEST))
CONFIG_TYPES = frozenset((OCI_CONFIG, DOCKER_CONFIG))
ACCEPT = ", ".join((DOCKER_MANIFEST, DOCKER_INDEX, OCI_MANIFEST, OCI_INDEX, "*/*;q=0.1"))

_OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
_OCI_NONDISTRIBUTABLE = "application/vnd.oci.image.layer.nondistributable.v1.tar"
_DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar"
_DOCKER_FOREIGN = "application/vnd.docker.image.rootfs.foreign.diff.tar"
_LAYER_FORMATS = ("", "+gzip", "+zstd", ".gzip", ".zstd")
LAYER_TYPES = frozenset(
    base + ending
    for base in (_OCI_LAYER, _OCI_NONDISTRIBUTABLE, _DOCKER_LAYER, _DOCKER_FOREIGN)
    for ending in _LAYER_FORMATS
)


class Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    """A reference to content: its media type, digest and size."""

    media_type: str
    digest: str
    size: int
    platform: Platform | None = None
    annotations: dict[str, str] = {}
    urls: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not is_digest(self.digest):
            raise ValueError(f"{self.digest!r} is not a sha256 or sha512 digest")
        if self.size < 0:
            raise ValueError(f"{self.digest} has the negative size {self.size}")


class ImageIndex(msgspec.Struct, frozen=True, rename="camel"):
    """An image index: the manifests of several platforms."""

    schema_version: int
    manifests: tuple[Descriptor, ...]
    media_type: str = ""


class ImageManifest(msgspec.Struct, frozen=True, rename="camel"):
    """An image manifest: its config and its layers, the lowest first."""

    schema_version: int
    config: Descriptor
    layers: tuple[Descriptor, ...]
    media_type: str = ""


class RootFs(msgspec.Struct, frozen=True):
    """The digests of the uncompressed layers."""

    diff_ids: tuple[str, ...] | None = ()


class RunConfig(msgspec.Struct, frozen=True, rename="pascal"):
    """The part of the run configuration that the CRI reports."""

    user: str = ""


class ImageConfig(Platform, frozen=True, kw_only=True):
    """An image's config: the platform it was built for, and its layers' diff ids."""

    rootfs: RootFs = RootFs()
    config: RunConfig | None = None

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """The digests of the uncompressed layers, the lowest first."""
        return self.rootfs.diff_ids or ()

    @property
    def platform(self) -> Platform:
        """The platform alone."""
        return Platform(
            os=self.os,
            architecture=self.architecture,
            variant=self.variant,
            os_version=self.os_version,
            os_features=self.os_features,
        )


_Document = TypeVar("_Document", bound=msgspec.Struct)


def decode_index(data: bytes, digest: str) -> ImageIndex:
    """Decode an image index."""
    index = _decode(data, ImageIndex, f"image index {digest}")
    if len(index.manifests) > ENTRY_LIMIT:
        raise IntegrityError(f"image index {digest} has more than {ENTRY_LIMIT} entries")
    return index


def decode_manifest(data: bytes, digest: str) -> ImageManifest:
    """Decode a manifest; IntegrityError if a part is of an unknown type."""
    manifest = _decode(data, ImageManifest, f"manifest {digest}")
    if manifest.config.media_type not in CONFIG_TYPES:
        kind = manifest.config.media_type
        raise IntegrityError(f"manifest {digest} is not an image: its config is of type {kind!r}")
    if len(manifest.layers) > LAYER_LIMIT:
        raise IntegrityError(f"manifest {digest} has more than {LAYER_LIMIT} layers")
    for layer in manifest.layers:
        if layer.media_type not in LAYER_TYPES:
            raise IntegrityError(
                f"manifest {digest}: layer {layer.digest} is of unknown type {layer.media_type!r}"
            )
    return manifest


def decode_config(data: bytes, manifest: ImageManifest) -> ImageConfig:
    """Decode an image's config, and check it against its manifest."""
    digest = manifest.config.digest
    config = _decode(data, ImageConfig, f"image config {digest}")
    contents, layers = len(config.diff_ids), len(manifest.layers)
    if contents != layers:
        raise IntegrityError(f"config {digest} names {contents} layers, its manifest {layers}")
    if config.config and len(config.config.user) > USER_LIMIT:
        raise IntegrityError(f"config {digest}: the user's name has more than {USER_LIMIT} letters")
    for diff_id in config.diff_ids:
        if not is_digest(diff_id):
            raise IntegrityError(f"config {digest}: {diff_id!r} is not the digest of a layer")
    return config


class _DocumentFields(msgspec.Struct, rename="camel"):
    media_type: str = ""
    manifests: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    layers: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def document_type(data: bytes, claimed: str, digest: str) -> str:
    """Return the media type of a document: that of an index or of a manifest.

    The Content-Type header, the document's mediaType and its fields must agree: a document that is
    an index to one reader and a manifest to another is an attack. `claimed` may be empty.
    """
    fields = _decode(data, _DocumentFields, f"manifest {digest}")
    served = claimed.partition(";")[0].strip()
    known = INDEX_TYPES | MANIFEST_TYPES
    if fields.media_type and served in known and fields.media_type != served:
        raise IntegrityError(
            f"{digest} is served as {served!r}, calls itself {fields.media_type!r}"
        )
    is_index = fields.manifests is not msgspec.UNSET
    kind = fields.media_type or served or (OCI_INDEX if is_index else OCI_MANIFEST)
    if kind not in known:
        raise IntegrityError(f"{digest} is of unknown type {kind!r}, not an image or image index")
    if (kind in INDEX_TYPES) != is_index or is_index == (fields.layers is not msgspec.UNSET):
        raise IntegrityError(f"{digest} calls itself {kind!r} but has not the fields of one")
    return kind


def _decode(data: bytes, kind: type[_Document], name: str) -> _Document:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise IntegrityError(f"{name} cannot be read: {error}") from error
