"""Exit codes, and the errors that end a command with one of them."""

EXIT_OK = 0
EXIT_NO = 1
EXIT_BAD_INPUT = 2
EXIT_UNJUDGED = 5
"""Undecided: the result depends on something that is not evaluated."""
EXIT_UNWRITABLE = 74
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


class BadInput(Exception):  # noqa: N818 - it names what happened, as a user reads it
    """Invalid arguments or input; the message has the place and the reason."""


class Unwritable(Exception):  # noqa: N818 - it names what happened, as a user reads it
    """A file cannot be written; the command has stopped without losing data."""
