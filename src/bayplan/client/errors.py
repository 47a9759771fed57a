"""Errors between a client and an API server, each with its own class.

Three groups, because callers handle them differently:

- `ConfigError`: the server's address or our credentials cannot be used; nothing was sent.
- `TransportError`: the network failed, or the response was not of an API server. After
  `UnreachableError` the request was never sent, so sending it again is always safe; after any
  other the server may or may not have acted.
- `ApiError`: the server answered with a `Status`. Its reason picks the subclass, its message is the
  exception's text.

No error text holds a credential: bodies that are not a `Status` are not quoted.
"""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import Struct

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of decoding malformed bytes."""


class ClientError(Exception):
    """Base of all errors of the client."""


class ConfigError(ClientError):
    """A kubeconfig, service account or plugin cannot be used."""


class TransportError(ClientError):
    """The request could not be sent, or the response is not that of an API server."""


class UnreachableError(TransportError):
    """No connection could be made; nothing was sent."""


class UntrustedError(TransportError):
    """The server's certificate is not trusted; nothing was sent."""


class DisconnectedError(TransportError):
    """The connection ended before the response did; the server may have acted."""


class TimedOutError(TransportError):
    """No response within the time limit; the server may have acted."""


class TooLargeError(TransportError):
    """A response exceeded its size limit."""


class MalformedError(TransportError):
    """A response is not what the API defines, or an object (`key`) does not fit its type."""

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
    """The object that a `Status` is about, and the causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: int = 0


class StatusMeta(Struct):
    """The continue token of a list whose old one has expired."""

    continue_: str = msgspec.field(default="", name="continue")


class Status(Struct):
    """The API server's response when it does not return an object."""

    metadata: StatusMeta = msgspec.field(default_factory=StatusMeta)
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ApiError(ClientError):
    """The server refused the request; the text is the server's."""

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
        """The fields at fault, if the server names them."""
        return self.status.details.causes if self.status.details else []

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.request}: {text}" if self.request else text


class BadRequestError(ApiError):
    """400: the request is not valid."""


class UnauthorizedError(ApiError):
    """401: the credentials were not accepted."""


class ForbiddenError(ApiError):
    """403: the user may not do that."""


class NotFoundError(ApiError):
    """404: there is no such object or resource."""


class MethodNotAllowedError(ApiError):
    """405: the resource does not support that verb."""


class NotAcceptableError(ApiError):
    """406: the server cannot respond in the requested media type."""


class ConflictError(ApiError):
    """409: the object has changed since it was read."""


class AlreadyExistsError(ConflictError):
    """409: an object of that name already exists."""


class GoneError(ApiError):
    """410: the resource version or continue token has expired."""


class UnsupportedMediaTypeError(ApiError):
    """415: the server does not accept a body or patch of that media type."""


class InvalidError(ApiError):
    """422: the object is not valid; `causes` name the fields."""


class TooManyRequestsError(ApiError):
    """429: the server is overloaded, or a disruption budget forbids the eviction."""


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
    """Return the exception for a status."""
    fallback = ServerFaultError if status.code >= 500 else ApiError
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, fallback)
    if retry_after is None and status.details and status.details.retry_after_seconds > 0:
        retry_after = float(status.details.retry_after_seconds)
    return kind(status, request, retry_after)


def status_from(code: int, body: bytes, secrets: tuple[str, ...] = ()) -> Status:
    """Read a `Status` from a response's body; other bodies are reported by their code alone."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except DECODE_ERRORS:
        return Status(code=code, message=f"HTTP {code} without a Status object")
    if not (status.message or status.reason):
        status.message = f"HTTP {code}"
    for secret in secrets:
        status.message = status.message.replace(secret, "[redacted]")
    status.code = code
    return status
