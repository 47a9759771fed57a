"""Refusals as gRPC status codes, and back."""

from __future__ import annotations

import grpc

from bayplan.nodegroups.errors import (
    InvalidRequestError,
    NodeGroupError,
    NotFoundError,
    NotOfferedError,
    QuotaExceededError,
    RefusedError,
    UnavailableError,
)

_Code = grpc.StatusCode
_CODES: dict[type[NodeGroupError], grpc.StatusCode] = {
    NotFoundError: _Code.NOT_FOUND,
    InvalidRequestError: _Code.INVALID_ARGUMENT,
    RefusedError: _Code.FAILED_PRECONDITION,
    QuotaExceededError: _Code.RESOURCE_EXHAUSTED,
    NotOfferedError: _Code.UNIMPLEMENTED,
    UnavailableError: _Code.UNAVAILABLE,
}
_ERRORS = {code: kind for kind, code in _CODES.items()}
_ERRORS[_Code.DEADLINE_EXCEEDED] = UnavailableError
_ERRORS[_Code.OUT_OF_RANGE] = RefusedError


def code_of(error: Exception) -> grpc.StatusCode:
    """The code that says what went wrong; INTERNAL for what is nobody's refusal."""
    codes = (code for kind, code in _CODES.items() if isinstance(error, kind))
    return next(codes, _Code.INTERNAL)


def error_of(code: grpc.StatusCode, said: str) -> NodeGroupError:
    """The error that a code stands for."""
    return _ERRORS.get(code, NodeGroupError)(said or code.name.lower().replace("_", " "))
