"""How a command says that it was asked wrongly."""

EXIT_OK = 0
EXIT_NO = 1
EXIT_BAD_INPUT = 2
EXIT_UNJUDGED = 5
"""Neither yes nor no: it hangs on something that is not judged here."""
EXIT_UNWRITABLE = 74
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


class BadInput(Exception):  # noqa: N818 - it names what happened, as a user reads it
    """Arguments or input that cannot be used; the message says where and why."""


class Unwritable(Exception):  # noqa: N818 - it names what happened, as a user reads it
    """A file that must be written cannot be: the command has stopped, with nothing lost."""
