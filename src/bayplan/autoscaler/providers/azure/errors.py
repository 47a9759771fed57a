"""Azure's errors as the provider's, by the codes that Azure documents.

Messages have Azure's code and the beginning of its message. Where no token could be had, only the
code of the identity service is used: the library's message could quote what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from bayplan.autoscaler.providers.azure.members import is_quota
from bayplan.nodegroups import (
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RefusedError,
)

_LONGEST = 300
_LATER = frozenset(
    {"anotheroperationinprogress", "operationpreempted", "retryableerror", "internalservererror"}
)
_ENTRA_CODE = re.compile(r"AADSTS\d{1,9}")


class AzureThrottledError(ProviderUnavailableError):
    """Azure throttled the request: nothing was done."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause
        """Seconds after which Azure wants to be asked again; 0 if it does not say."""


class ScaleSetChangedError(ProviderUnavailableError):
    """The scale set was changed since it was read: nothing was done."""


class AzureAnswerError(ProviderUnavailableError):
    """Azure's answer cannot be read, nor is it expected to be readable if it is read again."""


def error_from(error: Exception) -> NodeGroupError:
    """Return the provider's error for one of Azure's libraries."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or status < 400:
        return _without_answer(error)
    body = getattr(error, "error", None)
    code = str(getattr(body, "code", None) or status)
    message = str(getattr(body, "message", None) or "")[:_LONGEST]
    text = f"Azure: {code}: {message}" if message else f"Azure: {code}"
    if status == 429:
        return AzureThrottledError(text, _retry_after(error))
    return _kind(status, code, message)(text)


def _without_answer(error: Exception) -> NodeGroupError:
    """Return the error of a request without an answer, or without a token for it."""
    name = type(error).__name__
    found = _ENTRA_CODE.search(str(error))
    return ProviderUnavailableError(f"cannot call Azure: {name}{f' {found[0]}' if found else ''}")


def _kind(status: int, code: str, message: str) -> type[NodeGroupError]:
    if status == 412:
        return ScaleSetChangedError
    if status >= 500 or status == 408 or code.lower() in _LATER:
        return ProviderUnavailableError
    if is_quota(code, message):
        return QuotaExceededError
    if status == 404:
        return NodeGroupNotFoundError
    return InvalidRequestError if status == 400 else RefusedError


def _retry_after(error: Exception) -> float:
    headers = getattr(getattr(error, "response", None), "headers", {})
    text = str(headers.get("Retry-After") or "")
    known = text.isascii() and text.isdecimal() and len(text) <= 6
    return float(text) if known else 0.0


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of Azure's libraries as the provider's."""
    from azure.core.exceptions import AzureError  # noqa: PLC0415 - only who uses Azure needs it

    try:
        yield
    except AzureError as error:
        raise error_from(error) from error
    except (LookupError, TypeError, ValueError, AttributeError, aiohttp.ClientError) as error:
        # The library reads a response that is not Azure's without validating it.
        message = f"Azure's answer cannot be read: {type(error).__name__}"
        raise AzureAnswerError(message) from error
