"""How a cloud says no: each kind of refusal is a type, since each is handled differently."""

from __future__ import annotations


class NodeGroupError(Exception):
    """The cloud did not do what it was asked for, or cannot say."""


class NotFoundError(NodeGroupError):
    """There is no such node group or instance."""


class InvalidRequestError(NodeGroupError):
    """The question makes no sense: asking again will not help."""


class RefusedError(NodeGroupError):
    """It would take the group out of its bounds, or the cloud will not do it as things stand."""


class QuotaExceededError(NodeGroupError):
    """The account may not have that many."""


class NotOfferedError(NodeGroupError):
    """This cloud does not answer this question; whoever asked goes on without."""


class UnavailableError(NodeGroupError):
    """The cloud cannot be reached, or did not answer in time; it may work later."""
