"""Pods that do not get on: those without a node, and those that have one and do not run there."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.storages import CLAIMS, EVENTS, NODES
from bayplan.embedded.csi.claims import phase
from bayplan.embedded.simulation.simulation import Simulation

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
