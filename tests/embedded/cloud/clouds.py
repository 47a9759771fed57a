"""A simulated cloud without a cluster: node groups, and a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import TracebackType

from bayplan.base.clock import START
from bayplan.client.serving.certificates import CertificateAuthority
from bayplan.embedded.apiserver.kinds.catalog import Catalog, CatalogFields
from bayplan.embedded.apiserver.store.database import Database
from bayplan.embedded.apiserver.store.store import ApiObjectStore
from bayplan.embedded.cloud.cloud import Cloud, InstanceBoot
from bayplan.embedded.cloud.provider import CloudProvider
from bayplan.embedded.control.controller import ControllerContext, LocalAction
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.view import StoreView
from bayplan.embedded.csi.volumes import Driver
from bayplan.embedded.nodes.fleet import Fleet
from bayplan.embedded.nodes.machines import GPU_LABEL, GroupDriver, InstanceType, SimulatedNodeGroup
from bayplan.kube.nodes import Taint
from bayplan.nodegroups import Provider
from bayplan.nodegroups.externalgrpc.client import ExternalGrpc
from bayplan.nodegroups.externalgrpc.config import CloudConfig, read_config
from bayplan.nodegroups.externalgrpc.server import ListenAddresses, Tls, serve

DISK, FILES = "disk.csi.example.com", "files.csi.example.com"
DRIVERS = {
    DISK: Driver(name=DISK, topology_key="topology.disk.example.com/zone"),
    FILES: Driver(name=FILES, topology_key=""),
}
LARGE = InstanceType(name="large", cpu=8, memory="32Gi", price=0.5)
GPU = InstanceType(name="gpu", cpu=4, memory="16Gi", price=3.0, resources={"nvidia.com/gpu": 1})
WORKERS = SimulatedNodeGroup(
    name="workers",
    instance_type=LARGE,
    minimum=1,
    maximum=5,
    count=2,
    zones=("zone-a", "zone-b"),
    labels={"team": "shop"},
    taints=(Taint(key="dedicated", effect="NoSchedule", value="shop"),),
    allocatable={"attachable-volumes-csi-other.example.com": 4},
    drivers={DISK: GroupDriver(limit=8), FILES: GroupDriver()},
)
GPUS = SimulatedNodeGroup(
    name="gpus",
    instance_type=GPU,
    maximum=3,
    labels={GPU_LABEL: "a100"},
    options={"zero_or_max_node_scaling": True, "scale_down_unneeded_time": 90.0},
)


class ManualClock:
    """A clock that is moved by hand."""

    def __init__(self, moment: datetime = START) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class SimulatedCloud:
    """A simulated cloud and the boot of its instances; with a data file it survives a restart."""

    def __init__(
        self,
        groups: Sequence[SimulatedNodeGroup] = (WORKERS, GPUS),
        data: Path | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.database = Database(data)
        store = ApiObjectStore(self.database, CatalogFields(Catalog()))
        self.context = ControllerContext(StoreView(store), self.clock, Random(1))
        self.fleet = Fleet(self.context)
        self.cloud = Cloud(self.context, groups, store)
        self.boot = InstanceBoot(self.context, self.cloud, self.fleet)
        self.provider = CloudProvider(self.cloud, DRIVERS)
        self.cloud.open()

    def forward(self, seconds: float = 60.0) -> None:
        """Move the clock in small steps, and let instances boot."""
        for _ in range(12):
            self.clock.moment += timedelta(seconds=seconds / 12)
            self.settle()

    def settle(self) -> None:
        for _ in range(2):
            for name in [*self.cloud.instances, *self.fleet.machines]:
                for step in self.boot.decide(name):
                    if isinstance(step, LocalAction):
                        step.act()

    def inject(self, **fields: object) -> None:
        self.context.faults.inject("fault", Fault(**fields))  # type: ignore[arg-type]

    def clear(self) -> None:
        self.context.faults.clear("fault")

    def states(self, group: str = "workers") -> list[tuple[str, str]]:
        return [(one.name, one.state) for one in self.cloud.instances_of(group)]


class ServedProvider:
    """A provider that is called in this process, over a socket or over TLS."""

    def __init__(self, provider: Provider, how: str, folder: Path) -> None:
        self._provider = provider
        self._how = how
        self._folder = folder
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Provider:
        if self._how == "in process":
            return self._provider
        enter = self._opened.enter_async_context
        if self._how == "socket":
            socket = self._folder / "cloud.sock"
            await enter(serve(self._provider, ListenAddresses(socket=socket)))
            return await enter(ExternalGrpc(read_config(socket)))
        authority = CertificateAuthority.create(datetime.now(UTC))
        pair = authority.server_pair(["127.0.0.1"], datetime.now(UTC))
        places = ListenAddresses(host="127.0.0.1", tls=Tls(pair.certificate, pair.key))
        port = await enter(serve(self._provider, places))
        return await enter(ExternalGrpc(self._config(authority, port)))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._opened.aclose()

    def _config(self, authority: CertificateAuthority, port: int) -> CloudConfig:
        (self._folder / "ca.crt").write_bytes(authority.pair.certificate)
        config = self._folder / "cloud-config.yaml"
        config.write_text(f"address: 127.0.0.1:{port}\ncacert: ca.crt\ngrpc_timeout: 10s\n")
        return read_config(config)
