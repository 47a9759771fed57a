"""The error for invalid input, wherever it is found."""

from __future__ import annotations


class InputError(Exception):
    """Invalid input; the message names the place and the reason."""
