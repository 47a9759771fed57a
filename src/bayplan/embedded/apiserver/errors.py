"""Errors of the API: `Status` objects with a code, a reason and details.

Every client error is raised as a `StatusError`; the HTTP layer turns it into the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject


class FieldCause(NamedTuple):
    """Return the problems of one field of an object."""

    reason: str
    message: str
    field: str


class StatusError(Exception):
    """A refused request; it becomes a `Status` with the given code."""

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
        """Seconds after which the client may retry, if retrying helps."""
        return (self.details or {}).get("retryAfterSeconds")

    def status(self) -> JsonObject:
        """Return the `Status` object of this error."""
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
    """Return `deployments.apps`, or just `pods` in the core group."""
    return f"{plural}.{group}" if group else plural


def _about(group: str, plural: str, name: str) -> JsonObject:
    details = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in details.items() if value}


def not_found(group: str, plural: str, name: str) -> StatusError:
    """Return 404: the object does not exist."""
    message = f'{group_resource(group, plural)} "{name}" not found'
    return StatusError(404, "NotFound", message, _about(group, plural, name))


def no_such_path() -> StatusError:
    """Return 404: the URL names no served resource."""
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, {})


class PageNotFound(StatusError):  # noqa: N818 - a refusal like the others
    """404 in plain text: the URL is outside of every API group."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found\n")


def already_exists(group: str, plural: str, name: str, *, going: bool = False) -> StatusError:
    """Return 409: the name is in use."""
    message = f'{group_resource(group, plural)} "{name}" already exists'
    if going:
        message = f"object is being deleted: {message}"
    return StatusError(409, "AlreadyExists", message, _about(group, plural, name))


def conflict(group: str, plural: str, name: str, detail: str) -> StatusError:
    """Return 409: the object is not in the state that the request assumes."""
    message = f'Operation cannot be fulfilled on {group_resource(group, plural)} "{name}": {detail}'
    return StatusError(409, "Conflict", message, _about(group, plural, name))


def failed_precondition(group: str, plural: str, name: str, key: str, detail: str) -> StatusError:
    """Return 409: the stored object does not meet the request's preconditions."""
    message = (
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg:"
    )
    return conflict(group, plural, name, f"{message.format(key)} Precondition failed: {detail}")


def modified(group: str, plural: str, name: str) -> StatusError:
    """Return 409: the object was modified meanwhile."""
    advice = "please apply your changes to the latest version and try again"
    detail = f"the object has been modified; {advice}"
    return conflict(group, plural, name, detail)


def bad_request(message: str) -> StatusError:
    """Return 400: the request cannot be understood."""
    return StatusError(400, "BadRequest", message)


def method_not_allowed() -> StatusError:
    """Return 405: the resource does not support this verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def unauthorized() -> StatusError:
    """Return 401: the client is not authenticated."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, detail: str) -> StatusError:
    """Return 403: the user, or an admission rule, does not allow the request."""
    named = f'{group_resource(group, plural)} "{name}"' if name else group_resource(group, plural)
    return StatusError(
        403, "Forbidden", f"{named} is forbidden: {detail}", _about(group, plural, name)
    )


def invalid(group: str, kind: str, name: str, causes: Sequence[FieldCause]) -> StatusError:
    """Return 422: fields of the object have invalid values."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = _about(group, kind, name)
    details["causes"] = [cause._asdict() for cause in causes]
    message = f'{group_resource(group, kind)} "{name}" is invalid: {listed}'
    return StatusError(422, "Invalid", message, details)


def invalid_options(kind: str, *causes: FieldCause) -> StatusError:
    """Return 422: the options of the request are invalid."""
    return invalid("meta.k8s.io", kind, "", list(causes))


def expired(message: str) -> StatusError:
    """Return 410: the requested resource version is too old."""
    return StatusError(410, "Expired", message)


def too_large_version(requested: int, current: int) -> StatusError:
    """Return 504: the requested resource version does not exist yet."""
    message = f"Too large resource version: {requested}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return StatusError(504, "Timeout", message, details)


def stopping() -> StatusError:
    """Return 503: the server is shutting down."""
    return StatusError(
        503, "ServiceUnavailable", "the server is stopping", {"retryAfterSeconds": 1}
    )


def too_large(limit: int) -> StatusError:
    """Return 413: the body is larger than this server stores."""
    message = f"Request entity too large: limit is {limit}"
    return StatusError(413, "RequestEntityTooLarge", message)


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """Return 415: the format of the body is not supported."""
    listed = ", ".join(accepted)
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {listed}"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def not_acceptable(offered: Sequence[str]) -> StatusError:
    """Return 406: the format that the client accepts is not supported."""
    message = "only the following media types are accepted: " + ", ".join(offered)
    return StatusError(406, "NotAcceptable", message)
