"""The chain of admission steps: each is an async callable over one request value.

Mutating steps run first and may change `request.object`; validating steps run on the final object,
just before it is stored. A step refuses by raising an `ApiError`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import Call

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True)
class AdmissionRequest:
    """A write that is about to happen."""

    operation: Operation
    call: Call
    object: JsonObject | None
    old_object: JsonObject | None = None
    options: JsonObject = field(default_factory=dict)


Step = Callable[[AdmissionRequest], Awaitable[None]]


@dataclass(slots=True)
class AdmissionChain:
    """The steps of a server, in order."""

    mutating: list[Step] = field(default_factory=list)
    validating: list[Step] = field(default_factory=list)

    async def mutate(self, request: AdmissionRequest) -> None:
        """Let every mutating step look at the write."""
        for step in self.mutating:
            await step(request)

    async def validate(self, request: AdmissionRequest) -> None:
        """Let every validating step look at the write."""
        for step in self.validating:
            await step(request)
