"""How a report says that it was asked wrongly."""

from __future__ import annotations


class InputError(Exception):
    """A question or input that cannot be used; the message says where and why."""
