"""From the HTTP library's exceptions to ours, which tell what may have happened."""

from __future__ import annotations

import ssl

import aiohttp

from bayplan.client.errors import (
    DisconnectedError,
    MalformedError,
    TimedOutError,
    TransportError,
    UnreachableError,
    UntrustedError,
)

_NOT_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
)
_UNTRUSTED = (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError)
HTTP_FAULTS = (aiohttp.ClientError, OSError)
"""What the HTTP library raises."""
_CUT = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError)


def ours(request: object, error: Exception) -> TransportError:
    """Whatever the HTTP library raised, as one of our own.

    The order matters: the library's classes inherit from each other criss-cross.
    """
    if isinstance(error, _UNTRUSTED) or isinstance(error.__cause__, _UNTRUSTED):
        return UntrustedError(f"{request}: the server's certificate is not to be trusted")
    if isinstance(error, _NOT_CONNECTED):
        return UnreachableError(f"{request}: no connection: {_reason(error)}")
    if isinstance(error, TimeoutError):
        return TimedOutError(f"{request}: no answer in time")
    if isinstance(error, _CUT):
        return DisconnectedError(f"{request}: the connection was cut: {_reason(error)}")
    return MalformedError(f"{request}: not an HTTP answer ({type(error).__name__})")


def _reason(error: Exception) -> str:
    """The operating system's words for it; the library's own may quote what was sent."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return (isinstance(cause, OSError) and cause.strerror) or type(error).__name__
