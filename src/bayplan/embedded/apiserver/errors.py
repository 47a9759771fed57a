"""Refusals as the API speaks them: `Status` objects with a code, a reason and details.

Everything that a client may do wrong ends as an `ApiError`; the HTTP layer turns it into the
response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject


class Cause(NamedTuple):
    """What is wrong with one field of an object."""

    reason: str
    message: str
    field: str


class ApiError(Exception):
    """A refused request; it becomes a `Status` of the given code."""

    def __init__(
        self, code: int, reason: str, message: str, details: JsonObject | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    @property
    def retry_after(self) -> int | None:
        """Seconds after which the client may try again, if that helps."""
        return (self.details or {}).get("retryAfterSeconds")

    def status(self) -> JsonObject:
        """The `Status` object that says this."""
        status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details is not None:
            status["details"] = self.details
        return {key: value for key, value in status.items() if value != ""}


def group_resource(group: str, plural: str) -> str:
    """`deployments.apps`, or just `pods` in the core group."""
    return f"{plural}.{group}" if group else plural


def _about(group: str, plural: str, name: str) -> JsonObject:
    details = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in details.items() if value}


def not_found(group: str, plural: str, name: str) -> ApiError:
    """The object does not exist."""
    message = f'{group_resource(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, _about(group, plural, name))


def no_such_path() -> ApiError:
    """The URL names nothing that is served here."""
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, {})


class PageNotFound(ApiError):  # noqa: N818 - a refusal like the others
    """The URL is nobody's, not even that of a group; it is told in plain text."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found\n")


def already_exists(group: str, plural: str, name: str, *, going: bool = False) -> ApiError:
    """The name is taken."""
    message = f'{group_resource(group, plural)} "{name}" already exists'
    if going:
        message = f"object is being deleted: {message}"
    return ApiError(409, "AlreadyExists", message, _about(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """The object is not in the state that the request assumes."""
    message = f'Operation cannot be fulfilled on {group_resource(group, plural)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _about(group, plural, name))


def failed_precondition(group: str, plural: str, name: str, key: str, why: str) -> ApiError:
    """The stored object is not the one that the request means, as the store itself says it."""
    said = "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg:"
    return conflict(group, plural, name, f"{said.format(key)} Precondition failed: {why}")


def modified(group: str, plural: str, name: str) -> ApiError:
    """Somebody else wrote first."""
    advice = "please apply your changes to the latest version and try again"
    why = f"the object has been modified; {advice}"
    return conflict(group, plural, name, why)


def bad_request(message: str) -> ApiError:
    """The request cannot be understood."""
    return ApiError(400, "BadRequest", message)


def method_not_allowed() -> ApiError:
    """The resource does not know this verb."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def unauthorized() -> ApiError:
    """Nobody that this server knows."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    """The user, or a rule, does not let this happen."""
    named = f'{group_resource(group, plural)} "{name}"' if name else group_resource(group, plural)
    return ApiError(403, "Forbidden", f"{named} is forbidden: {why}", _about(group, plural, name))


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """Fields of the object hold what they must not hold."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = _about(group, kind, name)
    details["causes"] = [cause._asdict() for cause in causes]
    message = f'{group_resource(group, kind)} "{name}" is invalid: {listed}'
    return ApiError(422, "Invalid", message, details)


def invalid_options(kind: str, *causes: Cause) -> ApiError:
    """A request's options hold what they must not hold."""
    return invalid("meta.k8s.io", kind, "", list(causes))


def expired(message: str) -> ApiError:
    """The resource version asked for is no longer known."""
    return ApiError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> ApiError:
    """The resource version asked for has not happened yet."""
    message = f"Too large resource version: {asked}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return ApiError(504, "Timeout", message, details)


def stopping() -> ApiError:
    """The server is about to end; there may be another in a moment."""
    return ApiError(503, "ServiceUnavailable", "the server is stopping", {"retryAfterSeconds": 1})


def too_large(limit: int) -> ApiError:
    """The body is bigger than anything this server stores."""
    message = f"Request entity too large: limit is {limit}"
    return ApiError(413, "RequestEntityTooLarge", message)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """The body is in a format that is not spoken here."""
    listed = ", ".join(accepted)
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {listed}"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def not_acceptable(offered: Sequence[str]) -> ApiError:
    """The client wants a format that is not spoken here."""
    message = "only the following media types are accepted: " + ", ".join(offered)
    return ApiError(406, "NotAcceptable", message)
