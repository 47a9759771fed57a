"""Input that cannot be used, wherever that comes out."""

from __future__ import annotations


class InputError(Exception):
    """A question or input that cannot be used; the message says where and why."""
