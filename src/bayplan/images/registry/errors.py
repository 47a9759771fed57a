"""What can go wrong between us and a registry, by what a caller can do about it."""

import errno

from bayplan.kube.imagereferences import ImageReference, InvalidReferenceError, parse_image

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))


class PullError(Exception):
    """A pull that failed for good; says which image and why."""


class MalformedReferenceError(PullError):
    """The image's name cannot be one."""


class NotFoundError(PullError):
    """The registry has no such image or content."""


class AuthenticationError(PullError):
    """The registry wants other credentials."""


class UnavailableError(PullError):
    """The registry could not be reached or went on failing; later may be better."""


class IntegrityError(PullError):
    """The content is not what its digest, size or type says."""


class StorageFullError(PullError):
    """There is no room for the image."""


class PlatformError(PullError):
    """The image has nothing for the platform that is wanted."""


def storage_error(error: OSError) -> type[PullError]:
    """Say which of ours a failure of the disk is."""
    return StorageFullError if error.errno in _FULL else PullError


def image_to_pull(text: str) -> ImageReference:
    """Read an image's name in any of its spellings; what is none is a pull that fails."""
    try:
        return parse_image(text).to_pull()
    except InvalidReferenceError as error:
        raise MalformedReferenceError(f"image name {error}") from None
