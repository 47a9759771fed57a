"""Why an image is not present, by the reasons that the kubelet shows in a container's status."""

from __future__ import annotations

from typing import ClassVar


class ImageError(Exception):
    """A container has to wait for its image; `reason` is that of its status."""

    reason: ClassVar[str]

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidImageNameError(ImageError):
    """The image name is not valid."""

    reason = "InvalidImageName"


class ImageInspectError(ImageError):
    """The runtime cannot report whether the image is present."""

    reason = "ImageInspectError"


class ErrImageNeverPullError(ImageError):
    """The image is not present (or not for this pod), and may not be pulled."""

    reason = "ErrImageNeverPull"


class ErrImagePullError(ImageError):
    """The pull failed."""

    reason = "ErrImagePull"


class RegistryUnavailableError(ImageError):
    """The runtime reports that the registry is not available."""

    reason = "RegistryUnavailable"


class SignatureValidationFailedError(ImageError):
    """The runtime reports that the image's signature is not valid."""

    reason = "SignatureValidationFailed"


class ImagePullBackOffError(ImageError):
    """The pull failed before, and its back-off has not ended."""

    reason = "ImagePullBackOff"

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class CreatePodSandboxError(ImageError):
    """The pod's runtime class cannot be resolved, so nothing can be pulled for it."""

    reason = "CreatePodSandboxError"


_BY_PREFIX: dict[str, tuple[type[ImageError], str]] = {
    RegistryUnavailableError.reason: (RegistryUnavailableError, "the registry is unavailable"),
    SignatureValidationFailedError.reason: (
        SignatureValidationFailedError,
        "its signature is not valid",
    ),
}


def pull_error(image: str, problem: str) -> ImageError:
    """Return the error of a failed pull; runtimes prefix special ones with their reason."""
    for prefix, (kind, sentence) in _BY_PREFIX.items():
        if problem.startswith(prefix):
            rest = problem.removeprefix(prefix)
            return kind(f"cannot pull {image}: {sentence}{rest}")
    return ErrImagePullError(problem)
