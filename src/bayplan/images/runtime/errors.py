"""What can go wrong on the way to a container runtime."""

from __future__ import annotations


class RuntimeCallError(Exception):
    """A call to the runtime failed; `code` is gRPC's name for how."""

    def __init__(self, call: str, code: str, detail: str) -> None:
        super().__init__(f"{call}: {code}: {detail}")
        self.call = call
        self.code = code
        self.detail = detail


class RuntimeUnavailableError(RuntimeCallError):
    """Nobody answers on the socket."""


class RuntimeTimeoutError(RuntimeCallError):
    """The runtime took longer than it may."""


class UnusableAnswerError(RuntimeCallError):
    """The runtime answered with something no client can use, such as an image without an id."""

    def __init__(self, call: str, detail: str) -> None:
        super().__init__(call, "UNUSABLE_ANSWER", detail)
