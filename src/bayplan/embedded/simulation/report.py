"""The state of a simulated cluster in numbers, with its unbound and stuck pods."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.view import CLAIMS, CSI_NODES, EVENTS, NODES, StoreView
from bayplan.embedded.csi.volumes import phase
from bayplan.embedded.nodes.registration import condition_status
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.kube.attachlimits import attach_limit_keys, parse_attach_limit

PATIENCE_SECONDS = 3.0
"""Time after which a running scheduler has set a pod's PodScheduled condition."""
DEFAULT_SCHEDULER = "default-scheduler"
STARTING_SECONDS = 15.0
"""Time after which a pod with attached volumes has started."""


@dataclass(frozen=True, slots=True)
class UnboundPod:
    """A pod without a node, and the scheduler's message."""

    key: ObjectKey
    message: str
    owner: str = ""
    """Its owner, for grouping."""
    untried: bool = False
    """Whether no scheduler seems to process it."""
    scheduler: str = ""
    """Its scheduler's name, if that is not the default one."""


@dataclass(frozen=True, slots=True)
class StuckPod:
    """A bound pod that neither runs nor terminates, and the reason."""

    key: ObjectKey
    node: str
    reason: str
    owner: str = ""


def unbound_pods(simulation: Simulation) -> list[UnboundPod]:
    """Return the pods without a node, sorted."""
    found = []
    for key, pod in sorted(simulation.view.pods.items()):
        if pod.node or pod.is_terminal:
            continue
        condition = pod.condition("PodScheduled")
        message = (condition.message or condition.reason or "") if condition is not None else ""
        age = simulation.context.seconds() - moment(pod.metadata.creation_timestamp)
        untried = condition is None and age >= PATIENCE_SECONDS
        requested = pod.spec.scheduler_name
        scheduler = "" if requested == DEFAULT_SCHEDULER else requested
        found.append(UnboundPod(key, message, _owner(pod), untried, scheduler))
    return found


def stuck_pods(simulation: Simulation) -> list[StuckPod]:
    """Return the bound pods that should run or be gone and are not, sorted."""
    late = [(key, pod) for key, pod in simulation.view.pods.items() if _is_stuck(pod)]
    warnings = _warnings(simulation) if late else {}
    found = []
    for key, pod in sorted(late):
        detail = _stuck_reason(simulation, pod, warnings.get(pod.uid, ""))
        if detail:
            found.append(StuckPod(key, pod.node, detail, _owner(pod)))
    return found


def _is_stuck(pod: PodFacts) -> bool:
    return bool(pod.node) and not pod.is_terminal and (pod.is_terminating or pod.phase == "Pending")


def _stuck_reason(simulation: Simulation, pod: PodFacts, message: str) -> str:
    now = simulation.context.seconds()
    if pod.is_terminating:
        late = now > moment(pod.metadata.deletion_timestamp) + PATIENCE_SECONDS
        return f"cannot go: {_silence_reason(simulation, pod.node) or _held(pod)}" if late else ""
    if message:
        return message
    scheduled = pod.condition("PodScheduled")
    since = scheduled.last_transition_time if scheduled is not None else None
    if now - moment(since or pod.metadata.creation_timestamp) < STARTING_SECONDS:
        return ""
    return (
        _silence_reason(simulation, pod.node)
        or _unbound(simulation, pod)
        or "waiting for its volumes"
    )


def _silence_reason(simulation: Simulation, node: str) -> str:
    if simulation.view.get(NODES, "", node) is None:
        return f"there is no node {node}"
    return "" if simulation.fleet.working(node) else f"the kubelet of {node} is silent"


def _held(pod: PodFacts) -> str:
    return f"held by {', '.join(pod.metadata.finalizers or ()) or 'its kubelet'}"


def _unbound(simulation: Simulation, pod: PodFacts) -> str:
    for name in pod.claims:
        claim = simulation.view.get(CLAIMS, pod.metadata.namespace, name)
        state = "missing" if claim is None else phase(claim)
        if state != "Bound":
            return f"its claim {name} is {state}"
    return ""


def _warnings(simulation: Simulation) -> dict[str, str]:
    """Return the last warning event by the UID of its object."""
    found: dict[str, tuple[str, str]] = {}
    for event in simulation.view.all(EVENTS):
        if event.get("type") != "Warning":
            continue
        uid = (event.get("involvedObject") or {}).get("uid") or ""
        when = event.get("lastTimestamp") or ""
        message = f"{event.get('reason')}: {event.get('message') or ''}"
        found[uid] = max(found.get(uid, ("", "")), (when, message))
    return {uid: message for uid, (_, message) in found.items()}


def _owner(pod: PodFacts) -> str:
    return pod.controller.name if pod.controller is not None else ""


__all__ = [
    "BootingInstance",
    "NodeSummary",
    "SimulationSummary",
    "StuckPod",
    "UnboundPod",
    "driver_limits",
    "summarize",
]


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """One node."""

    name: str
    group: str
    ready: str
    pods: int
    volumes: dict[str, tuple[int, int | None]]
    """By driver: attached volumes, and the limit of CSINode or of the node (None: none)."""
    cordoned: bool = False
    silent: float | None = None
    """For how many seconds its kubelet has been silent; None if it works."""


@dataclass(frozen=True, slots=True)
class BootingInstance:
    """An instance whose node has not registered yet."""

    name: str
    group: str
    left: float | None
    """Seconds until it registers; None if unknown."""
    error: str = ""
    """Why it could not be created; empty if it could."""


@dataclass(frozen=True, slots=True)
class SimulationSummary:
    """The state of the whole cluster."""

    seconds: float
    nodes: list[NodeSummary]
    phases: Counter[str]
    claims: Counter[str]
    unbound_pods: list[UnboundPod]
    warnings: Counter[str]
    spent: float
    instances: Counter[str]
    faults: list[str] = field(default_factory=list)
    booting: list[BootingInstance] = field(default_factory=list)
    stuck_pods: list[StuckPod] = field(default_factory=list)

    @property
    def ready(self) -> int:
        """The number of ready nodes."""
        return sum(node.ready == "True" for node in self.nodes)

    @property
    def untried(self) -> int:
        """The number of pods that wait for a default scheduler that does not seem to run."""
        return sum(one.untried and not one.scheduler for one in self.unbound_pods)


def summarize(simulation: Simulation) -> SimulationSummary:
    """Return the current state of the cluster."""
    view = simulation.view
    claims = Counter(phase(claim) for claim in view.all(CLAIMS))
    return SimulationSummary(
        seconds=simulation.now(),
        nodes=[_node(simulation, node) for node in view.all(NODES)],
        phases=Counter(pod.phase for pod in view.pods.values()),
        claims=claims,
        unbound_pods=unbound_pods(simulation),
        warnings=Counter(simulation.sink.recorder.warnings),
        spent=simulation.cloud.spent(),
        instances=Counter(one.state for one in simulation.cloud.instances.values()),
        faults=sorted(_named(fault) for fault in simulation.faults.active.values()),
        booting=_booting(simulation),
        stuck_pods=stuck_pods(simulation),
    )


def _node(simulation: Simulation, node: JsonObject) -> NodeSummary:
    name = node["metadata"]["name"]
    machine = simulation.fleet.find(name)
    silent = machine.silent_since if machine is not None else None
    return NodeSummary(
        name=name,
        group=machine.instance.group.name if machine is not None else "",
        ready=condition_status(node, "Ready") or "Unknown",
        pods=simulation.view.count_on(name),
        volumes=_volumes(simulation, name),
        cordoned=bool((node.get("spec") or {}).get("unschedulable")),
        silent=None if silent is None else simulation.context.seconds() - silent,
    )


def _booting(simulation: Simulation) -> list[BootingInstance]:
    now = simulation.context.seconds()
    return [
        BootingInstance(one.name, one.group.name, _left(one.starts, now), one.error)
        for one in simulation.cloud.instances.values()
        if simulation.view.get(NODES, "", one.name) is None
    ]


def _left(starts: float | None, now: float) -> float | None:
    return None if starts is None else max(0.0, starts - now)


def _named(fault: Fault) -> str:
    """Return a fault and its target: `node-dies workers-1`."""
    aimed = (fault.node, fault.group, fault.driver, fault.zone)
    return " ".join(part for part in (fault.kind, *aimed) if part)


def driver_limits(view: StoreView, node: str) -> dict[str, int | None]:
    """Return the attach limit of each driver on a node, of CSINode or the node; None: none."""
    csi_node = view.get(CSI_NODES, "", node) or {}
    found = {}
    for driver in (csi_node.get("spec") or {}).get("drivers") or ():
        name, limit = driver["name"], (driver.get("allocatable") or {}).get("count")
        found[name] = _published(view, node, name) if limit is None else limit
    return found


def _volumes(simulation: Simulation, node: str) -> dict[str, tuple[int, int | None]]:
    attached = Counter(
        one.spec.attacher for one in simulation.view.attachments_on(node) if one.status.attached
    )
    limits = driver_limits(simulation.view, node)
    return {driver: (attached[driver], limit) for driver, limit in limits.items()}


def _published(view: StoreView, node: str, driver: str) -> int | None:
    status = (view.get(NODES, "", node) or {}).get("status") or {}
    amounts = status.get("allocatable") or {}
    limits = (
        parse_attach_limit(amounts[key]) for key in attach_limit_keys(driver) if key in amounts
    )
    return next((limit for limit in limits if limit is not None), None)
