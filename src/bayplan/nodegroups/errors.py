"""Errors of providers: a type for each kind, since each is handled differently."""

from __future__ import annotations


class NodeGroupError(Exception):
    """The cloud did not do what was requested, or could not answer."""


class NodeGroupNotFoundError(NodeGroupError):
    """There is no such node group or instance."""


class InvalidRequestError(NodeGroupError):
    """The request is invalid: repeating it will not help."""


class RefusedError(NodeGroupError):
    """The request would exceed the group's min or max size, or the cloud refuses it for now."""


class QuotaExceededError(NodeGroupError):
    """The request exceeds the account's quota."""


class UnimplementedError(NodeGroupError):
    """This provider does not implement this call; the caller goes on without it."""


class ProviderUnavailableError(NodeGroupError):
    """The cloud cannot be reached, or did not answer in time; a later call may succeed."""
