"""Asking a cloud with bounded patience, and what its refusals are called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from bayplan.nodegroups import NodeGroupError, Provider, QuotaExceededError, UnavailableError

T = TypeVar("T")
PATIENCE = 30.0
"""Seconds that a cloud has for one answer."""


async def patiently(question: Awaitable[T]) -> T:
    """An answer within reasonable time; UnavailableError if it does not come."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await question
    except TimeoutError:
        raise UnavailableError(f"no answer within {PATIENCE:.0f}s") from None


async def gpu_label(provider: Provider) -> str:
    """The label by which a cloud's nodes say which GPU they have; empty if it cannot say."""
    try:
        return await patiently(provider.gpu_label())
    except NodeGroupError:
        return ""


def code_of(error: NodeGroupError) -> str:
    """What an error is called."""
    if isinstance(error, QuotaExceededError):
        return "QUOTA_EXCEEDED"
    return "apiCallError" if isinstance(error, UnavailableError) else "cloudProviderError"
