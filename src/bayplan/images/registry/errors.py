"""What can go wrong between us and a registry, by what a caller can do about it."""


class PullError(Exception):
    """A pull that failed for good; says which image and why."""


class InvalidReferenceError(PullError):
    """The image's name cannot be one."""


class NotFoundError(PullError):
    """The registry has no such image or content."""


class AuthenticationError(PullError):
    """The registry wants other credentials."""


class UnavailableError(PullError):
    """The registry could not be reached or went on failing; later may be better."""


class IntegrityError(PullError):
    """The content is not what its digest, size or type says."""


class PlatformError(PullError):
    """The image has nothing for the platform that is wanted."""
