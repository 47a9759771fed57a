"""What AWS's refusals mean to whoever buys nodes, by the codes that AWS documents.

Of a refusal, its code and as much of its message as helps are told. Where a message could quote
what was signed, only the code is.
"""

from __future__ import annotations

from bayplan.nodegroups import (
    InvalidRequestError,
    NodeGroupError,
    NotFoundError,
    QuotaExceededError,
    RefusedError,
    UnavailableError,
)

_THROTTLED = frozenset(
    {"Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException"}
)
_LATER = frozenset(
    {
        "InternalFailure",
        "InternalError",
        "ServiceUnavailable",
        "Unavailable",
        "RequestTimeout",
        "ScalingActivityInProgress",
        "ResourceContention",
    }
)
_QUOTA = frozenset({"LimitExceeded", "ResourceLimitExceeded", "VcpuLimitExceeded"})
_ABOUT_KEYS = frozenset(
    {"SignatureDoesNotMatch", "IncompleteSignature", "InvalidSignatureException"}
)
_LONGEST = 300
_NOT_FOUND = ("not found", "does not exist")


class ThrottledError(UnavailableError):
    """AWS refused for being asked too much: nothing was done."""


def error_from(error: Exception) -> NodeGroupError:
    """The provider's error for one of boto3's."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        # boto3's own: no connection, no credentials, an answer that cannot be read.
        return UnavailableError(f"AWS cannot be asked: {type(error).__name__}")
    said = response.get("Error") or {}
    code, message = str(said.get("Code", "")), str(said.get("Message", ""))
    text = code if code in _ABOUT_KEYS else f"{code}: {message[:_LONGEST]}"
    status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode", 0)
    return _kind(code, message, status)(f"AWS: {text}")


def _kind(code: str, message: str, status: int) -> type[NodeGroupError]:
    if code in _THROTTLED:
        return ThrottledError
    if code in _LATER or status >= 500:
        return UnavailableError
    if code in _QUOTA:
        return QuotaExceededError
    if code.endswith("NotFound") or any(one in message.lower() for one in _NOT_FOUND):
        return NotFoundError
    if code == "ValidationError":
        return InvalidRequestError
    return RefusedError
