"""`--on-cluster`: the same runs as an indexed Job on a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from cyclopts import Parameter

from bayplan.cli.errors import BadInput
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.flags import Switch
from bayplan.cli.text.output import printable
from bayplan.cli.text.progress import show_runs
from bayplan.client.client import Tuning
from bayplan.client.errors import ClientError
from bayplan.kube.names import is_subdomain
from bayplan.lab.measuring import Measured
from bayplan.lab.simulating.orders import Inputs, Order
from bayplan.lab.simulating.pool import Failure
from bayplan.lab.simulating.remote import PackingError, Place, pack_inputs, run_on_cluster

T = TypeVar("T")
MOST_RUNS = 500
TUNING = Tuning(qps=50.0, burst=100, in_flight=8)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class OnCluster:
    """Runs in pods of a cluster instead of processes of this machine."""

    on_cluster: Switch = False
    """Make the runs as an indexed Job on the cluster of the kubeconfig; needs --image."""
    image: str = ""
    """The image of Bayplan that the pods run, of the same version as this command."""
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"])] = "default"
    """The namespace of the Job."""
    service_account: str = ""
    """A service account that may patch ConfigMaps there; without it one is made, and a role."""
    cluster: ClusterAccess = field(default_factory=ClusterAccess)

    def place(self, runs: int, jobs: int | None) -> Place:
        """Where the Job goes; BadInput if it cannot."""
        if not self.image or any(one.isspace() for one in self.image):
            raise BadInput("--on-cluster needs --image, the image of Bayplan for the pods")
        for option, name in (
            ("namespace", self.namespace),
            ("service-account", self.service_account),
        ):
            if name and not is_subdomain(name):
                raise BadInput(f"--{option} {printable(name[:80])}: cannot be a name")
        if runs > MOST_RUNS:
            raise BadInput(f"{runs} runs are more than the {MOST_RUNS} of one Job")
        name = f"bayplan-simulate-{secrets.token_hex(4)}"
        at_a_time = min(jobs or runs, runs)
        return Place(self.namespace, name, self.image, runs, at_a_time, self.service_account)


def made_on_cluster(
    wish: OnCluster, inputs: Inputs, jobs: int | None
) -> tuple[list[tuple[Order, Measured]], list[Failure]]:
    """Have all runs made on the cluster; nothing is left there."""
    orders = inputs.orders()
    place = wish.place(len(orders), jobs)
    try:
        packed = pack_inputs(inputs)
        return asyncio.run(_interruptible(_made(wish, place, packed, orders)))
    except PackingError as problem:
        raise BadInput(str(problem)) from None
    except ClientError as problem:
        raise BadInput(printable(str(problem))) from None


async def _made(
    wish: OnCluster, place: Place, packed: bytes, orders: list[Order]
) -> tuple[list[tuple[Order, Measured]], list[Failure]]:
    with show_runs(len(orders)) as tell:

        def done(count: int) -> None:
            for number in range(count):
                tell(number, 1.0)

        async with wish.cluster.connect(TUNING) as client:
            return await run_on_cluster(client, place, packed, orders, done)


async def _interruptible(work: Coroutine[object, object, T]) -> T:
    """Also a polite end (SIGTERM) leaves nothing behind: it is taken as Ctrl-C is."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
