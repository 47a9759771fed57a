"""Why an image is not there, by the names that the kubelet shows in a container's status."""

from __future__ import annotations

from typing import ClassVar


class ImageError(Exception):
    """A container has to wait; `reason` is what its status says."""

    reason: ClassVar[str]

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidImageNameError(ImageError):
    """The name cannot be read."""

    reason = "InvalidImageName"


class ImageInspectError(ImageError):
    """The runtime cannot say whether it holds the image."""

    reason = "ImageInspectError"


class ErrImageNeverPullError(ImageError):
    """The image is not there (or not for this pod), and may not be pulled."""

    reason = "ErrImageNeverPull"


class ErrImagePullError(ImageError):
    """The pull failed."""

    reason = "ErrImagePull"


class RegistryUnavailableError(ImageError):
    """The runtime says that the registry does not answer."""

    reason = "RegistryUnavailable"


class SignatureValidationFailedError(ImageError):
    """The runtime says that the image's signature is not good."""

    reason = "SignatureValidationFailed"


class ImagePullBackOffError(ImageError):
    """The pull failed before, and it is too early to try again."""

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
    """The error of a failed pull; runtimes put the special ones' names first."""
    for prefix, (kind, sentence) in _BY_PREFIX.items():
        if problem.startswith(prefix):
            rest = problem.removeprefix(prefix)
            return kind(f"cannot pull {image}: {sentence}{rest}")
    return ErrImagePullError(problem)
