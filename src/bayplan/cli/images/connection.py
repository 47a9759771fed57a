"""The connection to the container runtime."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.cli.errors import EXIT_NO, BadInput
from bayplan.cli.images.output import complain, warn
from bayplan.images.agent.image_gc_loop import (
    CLEAN_UP_WARNING,
    GateStateFile,
    UnreadableGateStateError,
)
from bayplan.images.runtime.cri import DEFAULT_TIMEOUT, CriRuntime
from bayplan.images.runtime.objects import RuntimeCallError
from bayplan.kube.gates import RUNTIME_CLASS_IN_IMAGE_CRI_API, FeatureGates, GateError

ENDPOINT_VARIABLE = "CONTAINER_RUNTIME_ENDPOINT"
DEFAULT_SOCKET = "/run/bayplan/cri.sock"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class RuntimeConnection:
    """The container runtime."""

    socket: Annotated[str, Parameter(name=["--socket", "-r"], show_default=False)] = ""
    """Any CRI socket, as a path or a URL; by default $CONTAINER_RUNTIME_ENDPOINT, else
    /run/bayplan/cri.sock."""
    timeout: float = DEFAULT_TIMEOUT
    """Seconds to wait for a response; pulls have no timeout."""
    feature_gates: str = ""
    """Feature gates; RuntimeClassInImageCriApi=false disables runtime handlers."""
    state_dir: Path = Path("/var/lib/bayplan")
    """The folder in which the node's agent records pulls and the last state of the gate."""

    @property
    def endpoint(self) -> str:
        """The socket to connect to."""
        return self.socket or os.environ.get(ENDPOINT_VARIABLE, "") or DEFAULT_SOCKET

    @property
    def use_handlers(self) -> bool:
        """Whether the feature gate enables handlers."""
        try:
            gates = FeatureGates.parse(self.feature_gates)
        except GateError as error:
            raise BadInput(f"--feature-gates: {error}") from error
        return gates.enabled(RUNTIME_CLASS_IN_IMAGE_CRI_API)

    def checked_handler(self, handler: str) -> str:
        """Return the handler; BadInput if the feature gate is off."""
        if handler and not self.use_handlers:
            raise BadInput(
                "--runtime: needs the feature gate RuntimeClassInImageCriApi, which is off"
            )
        return handler


async def with_runtime(
    connection: RuntimeConnection | None, work: Callable[[CriRuntime], Awaitable[int]]
) -> int:
    """Run work with the runtime; report its errors and return the exit code."""
    connection = connection or RuntimeConnection()
    if connection.timeout <= 0:
        raise BadInput(f"--timeout {connection.timeout:g}: must be more than 0 seconds")
    _warn_of_debt(connection.state_dir)
    try:
        async with CriRuntime(connection.endpoint, connection.timeout) as runtime:
            return await work(runtime)
    except RuntimeCallError as error:
        complain(f"{connection.endpoint}: {error}")
        return EXIT_NO


def _warn_of_debt(state_dir: Path) -> None:
    """Warn that images may be of the wrong platform after the feature gate was changed."""
    try:
        needs_clean_up = GateStateFile.in_state_dir(state_dir).needs_clean_up
    except UnreadableGateStateError as error:
        warn(str(error))
        return
    if needs_clean_up:
        warn(CLEAN_UP_WARNING)
