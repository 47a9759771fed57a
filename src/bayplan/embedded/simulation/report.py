"""How a simulated cluster stands, in numbers, and the pods that do not get on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.view import CLAIMS, CSI_NODES, EVENTS, NODES, View
from bayplan.embedded.csi.volumes import phase
from bayplan.embedded.nodes.registration import condition_status
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.kube.attachlimits import keys_of, limit_in

PATIENCE_SECONDS = 3.0
"""A scheduler that is there has said something about a pod by then."""
DEFAULT_SCHEDULER = "default-scheduler"
STARTING_SECONDS = 15.0
"""A pod whose volumes are attached has started by then."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a node, and what was said about it."""

    key: Key
    said: str
    owner: str = ""
    """Who made it, with others like it."""
    untried: bool = False
    """Whether nobody seems to schedule it."""
    scheduler: str = ""
    """The scheduler that it asks for, if that is not the default one."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A pod that has a node and neither runs there nor goes, and why."""

    key: Key
    node: str
    why: str
    owner: str = ""


def waiting(simulation: Simulation) -> list[Waiting]:
    """The pods without a node, in order."""
    found = []
    for key, pod in sorted(simulation.view.pods.items()):
        if pod.node or pod.terminal:
            continue
        condition = pod.condition("PodScheduled")
        said = (condition.message or condition.reason or "") if condition is not None else ""
        age = simulation.stage.seconds() - moment(pod.metadata.creation_timestamp)
        untried = condition is None and age >= PATIENCE_SECONDS
        asked = pod.spec.scheduler_name
        scheduler = "" if asked == DEFAULT_SCHEDULER else asked
        found.append(Waiting(key, said, _owner(pod), untried, scheduler))
    return found


def stuck(simulation: Simulation) -> list[Stuck]:
    """The pods that should run or be gone and are not, in order."""
    late = [(key, pod) for key, pod in simulation.view.pods.items() if _held_up(pod)]
    said = _warnings(simulation) if late else {}
    found = []
    for key, pod in sorted(late):
        why = _why(simulation, pod, said.get(pod.uid, ""))
        if why:
            found.append(Stuck(key, pod.node, why, _owner(pod)))
    return found


def _held_up(pod: PodFacts) -> bool:
    return bool(pod.node) and not pod.terminal and (pod.deleting or pod.phase == "Pending")


def _why(simulation: Simulation, pod: PodFacts, said: str) -> str:
    now = simulation.stage.seconds()
    if pod.deleting:
        late = now > moment(pod.metadata.deletion_timestamp) + PATIENCE_SECONDS
        return f"cannot go: {_unheard(simulation, pod.node) or _held(pod)}" if late else ""
    if said:
        return said
    scheduled = pod.condition("PodScheduled")
    since = scheduled.last_transition_time if scheduled is not None else None
    if now - moment(since or pod.metadata.creation_timestamp) < STARTING_SECONDS:
        return ""
    return _unheard(simulation, pod.node) or _unbound(simulation, pod) or "waits for its volumes"


def _unheard(simulation: Simulation, node: str) -> str:
    if simulation.view.get(NODES, "", node) is None:
        return f"there is no node {node}"
    return "" if simulation.fleet.working(node) else f"{node} is not heard of"


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
    """What was last complained of, by the UID of whom it is about."""
    found: dict[str, tuple[str, str]] = {}
    for event in simulation.view.all(EVENTS):
        if event.get("type") != "Warning":
            continue
        uid = (event.get("involvedObject") or {}).get("uid") or ""
        when = event.get("lastTimestamp") or ""
        said = f"{event.get('reason')}: {event.get('message') or ''}"
        found[uid] = max(found.get(uid, ("", "")), (when, said))
    return {uid: said for uid, (_, said) in found.items()}


def _owner(pod: PodFacts) -> str:
    return pod.controller.name if pod.controller is not None else ""


__all__ = ["Booting", "NodeLine", "Stuck", "Summary", "Waiting", "driver_limits", "summarize"]


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node."""

    name: str
    group: str
    ready: str
    pods: int
    volumes: dict[str, tuple[int, int | None]]
    """By driver: attached, and the limit that CSINode says or the node publishes (None: none)."""
    cordoned: bool = False
    silent: float | None = None
    """For how many seconds its kubelet has been silent, if it is."""


@dataclass(frozen=True, slots=True)
class Booting:
    """An instance that was bought and is no node yet."""

    name: str
    group: str
    left: float | None
    """Seconds until it is there; None if nobody knows."""
    error: str = ""
    """Why it could not be had, if it could not."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The whole cluster."""

    seconds: float
    nodes: list[NodeLine]
    phases: Counter[str]
    claims: Counter[str]
    waiting: list[Waiting]
    warnings: Counter[str]
    spent: float
    instances: Counter[str]
    faults: list[str] = field(default_factory=list)
    booting: list[Booting] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)

    @property
    def ready(self) -> int:
        """How many nodes are ready."""
        return sum(node.ready == "True" for node in self.nodes)

    @property
    def untried(self) -> int:
        """How many pods wait for the default scheduler, which does not seem to be there."""
        return sum(one.untried and not one.scheduler for one in self.waiting)


def summarize(simulation: Simulation) -> Summary:
    """How the cluster stands now."""
    view = simulation.view
    claims = Counter(phase(claim) for claim in view.all(CLAIMS))
    return Summary(
        seconds=simulation.now(),
        nodes=[_node(simulation, node) for node in view.all(NODES)],
        phases=Counter(pod.phase for pod in view.pods.values()),
        claims=claims,
        waiting=waiting(simulation),
        warnings=Counter(simulation.sink.recorder.warnings),
        spent=simulation.cloud.spent(),
        instances=Counter(one.state for one in simulation.cloud.instances.values()),
        faults=sorted(_named(fault) for fault in simulation.faults.active.values()),
        booting=_booting(simulation),
        stuck=stuck(simulation),
    )


def _node(simulation: Simulation, node: JsonObject) -> NodeLine:
    name = node["metadata"]["name"]
    machine = simulation.fleet.find(name)
    silent = machine.silent_since if machine is not None else None
    return NodeLine(
        name=name,
        group=machine.instance.group.name if machine is not None else "",
        ready=condition_status(node, "Ready") or "Unknown",
        pods=simulation.view.count_on(name),
        volumes=_volumes(simulation, name),
        cordoned=bool((node.get("spec") or {}).get("unschedulable")),
        silent=None if silent is None else simulation.stage.seconds() - silent,
    )


def _booting(simulation: Simulation) -> list[Booting]:
    now = simulation.stage.seconds()
    return [
        Booting(one.name, one.group.name, _left(one.starts, now), one.error)
        for one in simulation.cloud.instances.values()
        if simulation.view.get(NODES, "", one.name) is None
    ]


def _left(starts: float | None, now: float) -> float | None:
    return None if starts is None else max(0.0, starts - now)


def _named(fault: Fault) -> str:
    """A fault and whom it strikes: `node-dies workers-1`."""
    aimed = (fault.node, fault.group, fault.driver, fault.zone)
    return " ".join(part for part in (fault.kind, *aimed) if part)


def driver_limits(view: View, node: str) -> dict[str, int | None]:
    """By driver on a node, the limit that CSINode says or the node publishes; None: none."""
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


def _published(view: View, node: str, driver: str) -> int | None:
    status = (view.get(NODES, "", node) or {}).get("status") or {}
    amounts = status.get("allocatable") or {}
    said = (limit_in(amounts[key]) for key in keys_of(driver) if key in amounts)
    return next((limit for limit in said if limit is not None), None)
