"""Where the runtime is, and what happens if it does not answer."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.cli.errors import EXIT_NO, BadInput
from bayplan.cli.images.output import complain, warn
from bayplan.images.agent.housekeeping import WARNING, GateLedger, UnreadableGateStateError
from bayplan.images.runtime.cri import DEFAULT_TIMEOUT, CriRuntime
from bayplan.images.runtime.objects import RuntimeCallError
from bayplan.kube.gates import RUNTIME_CLASS_IN_IMAGE_CRI_API, FeatureGates, GateError

ENDPOINT_VARIABLE = "CONTAINER_RUNTIME_ENDPOINT"
DEFAULT_SOCKET = "/run/bayplan/cri.sock"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Connection:
    """The runtime to talk to."""

    socket: Annotated[str, Parameter(name=["--socket", "-r"], show_default=False)] = ""
    """Any CRI socket, as a path or a URL; else $CONTAINER_RUNTIME_ENDPOINT, else
    /run/bayplan/cri.sock."""
    timeout: float = DEFAULT_TIMEOUT
    """Seconds to wait for an answer; a pull may take as long as it takes."""
    feature_gates: str = ""
    """RuntimeClassInImageCriApi=false knows no handlers."""
    state_dir: Path = Path("/var/lib/bayplan")
    """Where the node's agent remembers pulls and the gate's last state."""

    @property
    def endpoint(self) -> str:
        """The socket to dial."""
        return self.socket or os.environ.get(ENDPOINT_VARIABLE, "") or DEFAULT_SOCKET

    @property
    def use_handlers(self) -> bool:
        """Whether the gate lets handlers be spoken of."""
        try:
            gates = FeatureGates.parse(self.feature_gates)
        except GateError as error:
            raise BadInput(f"--feature-gates: {error}") from error
        return gates.enabled(RUNTIME_CLASS_IN_IMAGE_CRI_API)

    def checked_handler(self, handler: str) -> str:
        """The handler, if the gate lets one be named."""
        if handler and not self.use_handlers:
            raise BadInput("--runtime: RuntimeClassInImageCriApi is off, no handler can be named")
        return handler


async def with_runtime(
    connection: Connection | None, work: Callable[[CriRuntime], Awaitable[int]]
) -> int:
    """Do something with the runtime; if it fails, say so and give the exit code for "no"."""
    connection = connection or Connection()
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
    """Whoever looks at a node's images should know that some may be the wrong ones."""
    try:
        owed = GateLedger.in_state_dir(state_dir).owed
    except UnreadableGateStateError as error:
        warn(str(error))
        return
    if owed:
        warn(WARNING)
