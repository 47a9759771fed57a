"""`--on-cluster`: run the simulations as an indexed Job on a Kubernetes cluster."""

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
from bayplan.client.client import ClientOptions
from bayplan.client.errors import ClientError
from bayplan.kube.names import is_subdomain
from bayplan.lab.measurement import RunMeasurements
from bayplan.lab.simulation.pool import RunFailure
from bayplan.lab.simulation.remote import PackingError, SimulationJob, pack_inputs, run_on_cluster
from bayplan.lab.simulation.runspec import RunSpec, SimulationInputs

T = TypeVar("T")
MOST_RUNS = 500
TUNING = ClientOptions(qps=50.0, burst=100, in_flight=8)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class OnCluster:
    """Options for runs in pods of a cluster instead of processes of this machine."""

    on_cluster: Switch = False
    """Run as an indexed Job on the cluster of the kubeconfig; needs --image."""
    image: str = ""
    """The image of Bayplan for the pods, of the same version as this command."""
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"])] = "default"
    """The namespace of the Job."""
    service_account: str = ""
    """A service account that may patch ConfigMaps; by default one is created, with its role."""
    cluster: ClusterAccess = field(default_factory=ClusterAccess)

    def place(self, runs: int, jobs: int | None) -> SimulationJob:
        """Return the settings of the Job; BadInput if they are invalid."""
        if not self.image or any(one.isspace() for one in self.image):
            raise BadInput("--on-cluster: needs --image, the image of Bayplan for the pods")
        for option, name in (
            ("namespace", self.namespace),
            ("service-account", self.service_account),
        ):
            if name and not is_subdomain(name):
                raise BadInput(f"--{option} {printable(name[:80])}: not a valid name")
        if runs > MOST_RUNS:
            raise BadInput(f"--on-cluster: {runs} runs, must be at most {MOST_RUNS} for one Job")
        name = f"bayplan-simulate-{secrets.token_hex(4)}"
        at_a_time = min(jobs or runs, runs)
        return SimulationJob(
            self.namespace, name, self.image, runs, at_a_time, self.service_account
        )


def made_on_cluster(
    wish: OnCluster, inputs: SimulationInputs, jobs: int | None
) -> tuple[list[tuple[RunSpec, RunMeasurements]], list[RunFailure]]:
    """Run all simulations on the cluster; its objects are deleted afterwards."""
    orders = inputs.runs()
    place = wish.place(len(orders), jobs)
    try:
        packed = pack_inputs(inputs)
        return asyncio.run(_interruptible(_made(wish, place, packed, orders)))
    except PackingError as problem:
        raise BadInput(str(problem)) from None
    except ClientError as problem:
        raise BadInput(printable(str(problem))) from None


async def _made(
    wish: OnCluster, place: SimulationJob, packed: bytes, orders: list[RunSpec]
) -> tuple[list[tuple[RunSpec, RunMeasurements]], list[RunFailure]]:
    with show_runs(len(orders)) as progress:

        def done(count: int) -> None:
            for number in range(count):
                progress(number, 1.0)

        async with wish.cluster.connect(TUNING) as client:
            return await run_on_cluster(client, place, packed, orders, done)


async def _interruptible(work: Coroutine[object, object, T]) -> T:
    """Run work; SIGTERM is handled like Ctrl-C, so that nothing is left behind."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
