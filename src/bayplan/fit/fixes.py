"""Fixes as values: the steps that would make a pod fit, and the node it would then go to.

A step is a change of the pending pod, or of objects around it, with a sentence for people and a
cost that orders it among others. Applying a fix puts its objects into a snapshot (a fork, to try
it) and returns the pod as changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from bayplan.base.values import JsonObject
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod


class Objects(Protocol):
    """The store of the objects that a step changes: a snapshot."""

    def put(self, obj: KubeObject) -> None:
        """Add an object, or replace it."""

    def delete(self, kind: type[KubeObject], key: str) -> None:
        """Take an object away."""


class FixKind(Enum):
    """What is changed."""

    UNCORDON = "uncordon"
    CLEAR_TAINT = "clear-taint"
    TOLERATION = "toleration"
    LABEL_NODE = "label-node"
    CHANGE_SELECTOR = "change-selector"
    SMALLER_REQUEST = "smaller-request"
    DROP_HOST_PORT = "drop-host-port"
    MOVE_POD = "move-pod"
    STOP_POD = "stop-pod"
    ADD_NODE = "add-node"
    ADD_BIGGER_NODE = "add-bigger-node"
    INSTALL_DRIVER = "install-driver"
    RAISE_LIMIT = "raise-limit"
    DETACH_VOLUME = "detach-volume"
    CREATE_CLAIM = "create-claim"
    CREATE_CLASS = "create-class"
    BIND_CLAIM = "bind-claim"
    SET_CLASS = "set-class"
    ADD_VOLUME = "add-volume"
    CREATE_VOLUME = "create-volume"
    FORGET_NODE = "forget-selected-node"
    RELAX_SPREAD = "relax-spread"
    HONOR_TAINTS = "honor-taints"
    HONOR_AFFINITY = "honor-affinity"
    DROP_AFFINITY = "drop-affinity"


class Risk(Enum):
    """What a step may cause besides its purpose."""

    EVICTS = "evicts"
    """A running pod is deleted."""
    UNBALANCES = "unbalances"
    """Pods are spread less evenly."""
    RELAXES_A_RULE = "relaxes-a-rule"
    """A rule of the pod is relaxed."""
    COSTS = "costs"
    """It costs money."""
    RESTARTS = "restarts"
    """The workload's pods are replaced, those that run too."""
    RUNS_WITH_LESS = "runs-with-less"
    """The pod has less than it asked for."""
    OPENS_A_NODE = "opens-a-node"
    """Other pods may go to the node as well."""
    OVERLOADS = "overloads"
    """A node is asked for more than it may be able to do."""
    NEEDS_MANUAL_STEPS = "needs-manual-steps"
    """No command alone makes the change."""


class Target(NamedTuple):
    """The object that a step changes, or the first of them."""

    kind: str
    namespace: str
    name: str


NOTHING = Target("", "", "")


@dataclass(frozen=True, slots=True)
class Step:
    """One change."""

    kind: FixKind
    text: str
    """What to do, in the imperative, without a full stop."""
    cost: float
    """How much is asked; what asks for less comes first."""
    pod: Pod
    """The waiting pod after this step."""
    puts: tuple[KubeObject, ...] = ()
    """Objects that are new, or changed, by this step."""
    deletes: tuple[tuple[type[KubeObject], str], ...] = ()
    """Kinds and keys of objects that go by this step."""
    less_of: str = ""
    """For steps that differ only in how much is asked for: of what. A smaller cost is then less of
    the same.
    """
    target: Target = NOTHING
    patch: JsonObject = field(default_factory=dict, hash=False)
    """What to merge into the target (strategically, if that is a pod or has a template of one); its
    manifest, if it is new; nothing, if it goes.
    """
    command: str = ""
    """The kubectl command that makes the change, for a shell; empty if none does."""
    risks: tuple[Risk, ...] = ()

    def apply(self, objects: Objects) -> None:
        """Make the change around the pod."""
        for kind, key in self.deletes:
            objects.delete(kind, key)
        for obj in self.puts:
            objects.put(obj)


Steps = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """Steps that, taken together, make a pod fit."""

    steps: Steps
    node: str
    """Where the pod would then go."""

    @property
    def cost(self) -> float:
        """What all steps ask for; several small ones are worse than one."""
        return cost_of(self.steps)

    @property
    def kinds(self) -> tuple[FixKind, ...]:
        """What is changed, step by step."""
        return tuple(step.kind for step in self.steps)

    @property
    def summary(self) -> str:
        """The whole fix in a sentence."""
        text = ", and ".join(step.text for step in self.steps)
        return f"{text[:1].upper()}{text[1:]}; the pod then fits {self.node}."

    def apply(self, objects: Objects) -> Pod:
        """Make the changes; returns the pod to place after them."""
        for step in self.steps:
            step.apply(objects)
        return self.steps[-1].pod


def cost_of(steps: Steps) -> float:
    """The cost of steps taken together."""
    return sum(step.cost for step in steps) + 0.5 * (len(steps) - 1)
