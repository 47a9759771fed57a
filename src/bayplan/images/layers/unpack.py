"""From a verified blob to a complete directory, in one call that runs in a thread."""

import errno
import os
import threading
from pathlib import Path

import msgspec

from bayplan.images.layers.apply import LayerApplier
from bayplan.images.layers.clone import Usage, clone, measure
from bayplan.images.layers.limits import Limits
from bayplan.images.layers.streams import LayerStream
from bayplan.images.registry.errors import IntegrityError, PullError, storage_error

_HOSTILE = frozenset((errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP, errno.ENOTDIR))


class LayerJob(msgspec.Struct, frozen=True):
    """One layer to unpack."""

    blob: Path
    diff_id: str
    parent: Path | None  # the chain below, complete
    target: Path  # an empty directory to fill
    limits: Limits = Limits()


def unpack(job: LayerJob, stop: threading.Event) -> Usage:
    """Fill the target with the parent's tree and the layer on top; say what it occupies."""
    try:
        shared = clone(str(job.parent), str(job.target)) if job.parent else set()
        with job.blob.open("rb") as file:
            allowed = job.limits.expanded(job.blob.stat().st_size)
            stream = LayerStream(file, allowed, stop)
            LayerApplier(str(job.target), job.limits).apply(stream)
            check_content(stream.digest(), job.diff_id)
        return measure(str(job.target), shared)
    except InterruptedError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise _kind(error)(f"layer {job.diff_id} cannot be unpacked: {reason}") from error


def content_digest(blob: Path, limits: Limits, stop: threading.Event) -> str:
    """Say what a layer's blob expands to, without unpacking it."""
    with blob.open("rb") as file:
        allowed = limits.expanded(blob.stat().st_size)
        return LayerStream(file, allowed, stop).digest()


def check_content(actual: str, diff_id: str) -> None:
    """Raise unless a layer expands to what its image says."""
    if actual != diff_id:
        raise IntegrityError(f"a layer unpacks to {actual}, its image says {diff_id}")


def _kind(error: OSError) -> type[PullError]:
    return IntegrityError if error.errno in _HOSTILE else storage_error(error)
