"""What can go wrong between us and an API server, each with its own class.

Three families, because callers do different things about them:

- `ConfigError`: we were told nonsense about where the server is or who we are; nothing was sent.
- `TransportError`: the network, or whatever answered, failed us. `UnreachableError` says that the
  request was never sent, so that doing it again is always safe; after any other the server may or
  may not have acted.
- `ApiError`: the server answered with a `Status`. Its reason picks the subclass, its message is the
  exception's text.

No text here ever holds a credential: bodies that are not a `Status` are not quoted at all.
"""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import Struct

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are not what they should be."""


class ClientError(Exception):
    """Anything that the client raises by itself."""


class ConfigError(ClientError):
    """A kubeconfig, a service account or a plugin that cannot be used, and why."""


class TransportError(ClientError):
    """The server could not be asked, or did not answer as an API server does."""


class UnreachableError(TransportError):
    """No connection could be made; nothing was sent."""


class UntrustedError(TransportError):
    """The server could not prove that it is the one we were told of; nothing was sent."""


class DisconnectedError(TransportError):
    """The connection ended before the answer did; the server may have acted."""


class TimedOutError(TransportError):
    """No answer within the time allowed; the server may have acted."""


class TooLargeError(TransportError):
    """An answer bigger than the bound set for it."""


class MalformedError(TransportError):
    """An answer that is not what the API defines, or one object (`key`) that does not fit."""

    def __init__(self, message: str, key: str = "", uid: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.uid = uid


class StatusCause(Struct):
    """One of several causes of a refusal."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Struct):
    """What a `Status` is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: int = 0


class StatusMeta(Struct):
    """How a list could go on that has taken too long."""

    continue_: str = msgspec.field(default="", name="continue")


class Status(Struct):
    """The API server's answer when it has no object to give."""

    metadata: StatusMeta = msgspec.field(default_factory=StatusMeta)
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ApiError(ClientError):
    """The server understood us and refused; the text is the server's own."""

    def __init__(self, status: Status, request: str = "", retry_after: float | None = None) -> None:
        super().__init__(status.message or status.reason or f"HTTP {status.code}")
        self.status = status
        self.request = request
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return self.status.code

    @property
    def reason(self) -> str:
        """The server's one-word reason."""
        return self.status.reason

    @property
    def causes(self) -> list[StatusCause]:
        """The fields at fault, where the server names them."""
        return self.status.details.causes if self.status.details else []

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.request}: {text}" if self.request else text


class BadRequestError(ApiError):
    """400: the request makes no sense to the server."""


class UnauthorizedError(ApiError):
    """401: the server does not know who we are."""


class ForbiddenError(ApiError):
    """403: the server knows who we are, and says no."""


class NotFoundError(ApiError):
    """404: there is no such object, or no such resource."""


class MethodNotAllowedError(ApiError):
    """405: the resource does not do that."""


class NotAcceptableError(ApiError):
    """406: the server cannot answer in the form asked for."""


class ConflictError(ApiError):
    """409: the object is no longer what the request assumed."""


class AlreadyExistsError(ConflictError):
    """409: an object of that name is there already."""


class GoneError(ApiError):
    """410: the resource version or continue token is too old to go on from."""


class UnsupportedMediaTypeError(ApiError):
    """415: the server does not take a body or patch of that kind."""


class InvalidError(ApiError):
    """422: the object breaks a rule; `causes` name the fields."""


class TooManyRequestsError(ApiError):
    """429: not now; or an eviction that a disruption budget forbids."""


class ServerFaultError(ApiError):
    """500 and above: the server failed, and may have acted."""


class UnavailableError(ServerFaultError):
    """503: the server is not ready to serve; it has not acted."""


class ServerTimeoutError(ServerFaultError):
    """504, or the reason that goes with it: the server may have acted."""


_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExistsError,
    "Expired": GoneError,
    "Gone": GoneError,
    "Invalid": InvalidError,
    "ServerTimeout": ServerTimeoutError,
    "Timeout": ServerTimeoutError,
}
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    406: NotAcceptableError,
    409: ConflictError,
    410: GoneError,
    415: UnsupportedMediaTypeError,
    422: InvalidError,
    429: TooManyRequestsError,
    503: UnavailableError,
    504: ServerTimeoutError,
}


def error_from(status: Status, request: str = "", retry_after: float | None = None) -> ApiError:
    """The exception that says what this status says."""
    fallback = ServerFaultError if status.code >= 500 else ApiError
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, fallback)
    if retry_after is None and status.details and status.details.retry_after_seconds > 0:
        retry_after = float(status.details.retry_after_seconds)
    return kind(status, request, retry_after)


def status_from(code: int, body: bytes, secrets: tuple[str, ...] = ()) -> Status:
    """Read a `Status` from an answer's body; anything else is known by its code alone."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except UNREADABLE:
        return Status(code=code, message=f"HTTP {code} without a Status object")
    if not (status.message or status.reason):
        status.message = f"HTTP {code}"
    for secret in secrets:
        status.message = status.message.replace(secret, "[redacted]")
    status.code = code
    return status
