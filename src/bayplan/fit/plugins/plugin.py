"""The record of a plugin: everything that the rest of the model uses of it.

A plugin is one module (or folder) of this package with a `PLUGIN` of this type. The registry lists
them; nothing outside this package names a plugin or knows its arguments and messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from bayplan.fit.decision import Refusal
from bayplan.fit.fixes import Step
from bayplan.fit.plugins.arguments import Arguments
from bayplan.fit.plugins.base import EvaluationRequest, Filter, PreFilterInput, Score
from bayplan.fit.plugins.capacity import Capacity
from bayplan.fit.plugins.explanation import NO_EXPLAINER, Explainer
from bayplan.fit.plugins.hints import ClusterEvent, Hints
from bayplan.fit.profile import PluginSet
from bayplan.fit.requirements.pods import PodRequirements
from bayplan.fit.signatures.reads import PluginFields
from bayplan.fit.state.cluster import ClusterState
from bayplan.kube.pods import Pod


class Cause(Enum):
    """Why a pod is pending, in a word."""

    QUEUE = "queue"
    """Its queue has not admitted it."""
    GATE = "gate"
    """It has a scheduling gate."""
    SCHEDULER = "scheduler"
    """It fits a node, and its scheduler has not scheduled it."""
    RESOURCES = "resources"
    VOLUMES = "volumes"
    """Claims, attach limits, drivers, or a volume's topology."""
    AFFINITY = "affinity"
    """Affinity to nodes or pods."""
    SPREAD = "spread"
    """The spread of pods over domains."""
    TAINTS = "taints"
    """Taints that it does not tolerate; a cordon is one."""
    PORTS = "ports"
    """Host ports in use."""
    DEVICES = "devices"
    """ResourceClaims."""
    NODES = "nodes"
    """There are no nodes."""
    UPCOMING = "upcoming"
    """It fits an upcoming node."""
    OTHER = "other"


Point = Literal["pre_filter", "filter", "post_filter", "pre_score", "score", "reserve", "pre_bind"]
FILTERING: tuple[Point, ...] = ("pre_filter", "filter")
SCORING: tuple[Point, ...] = ("pre_score", "score")
BINDING: tuple[Point, ...] = ("reserve", "pre_bind")

CompileFilter = Callable[[EvaluationRequest], Filter | None]
"""Compiles the filter of a request; None if it cannot refuse the pod."""
CompileScore = Callable[[EvaluationRequest], Score | None]
"""The same for scores."""
PreFilter = Callable[[PreFilterInput], Refusal | None]
"""Refuses a pod whatever node it is; None if nodes are to be evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostFilter:
    """What kube-scheduler's plugin reports at PostFilter of a pod that fits nowhere."""

    message: Callable[[PodRequirements], str]
    """What stands before the message of preemption."""
    message_without_state: str
    """What stands instead of it, where another plugin refused the pod before this one was asked:
    the plugin then fails, and preemption is not tried.
    """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SchedulerPlugin:
    """A plugin of the scheduling framework."""

    name: str
    """kube-scheduler's."""
    points: tuple[Point, ...]
    """kube-scheduler's extension points that it has, beside those for events."""
    cause: Cause = Cause.OTHER
    """The cause of pods that it refuses."""
    node_labels: Callable[[Pod, ClusterState], frozenset[str]] | None = None
    """The labels of nodes that it reads by a pod's own rules and volumes."""
    explainer: Explainer = NO_EXPLAINER
    """How its refusals are explained."""
    refuses_for_good: bool = False
    """Whether what it refuses on an empty node, it always refuses there."""
    names_drivers: bool = False
    """Whether its filter names the CSI drivers because of which it refuses."""
    sets_apart: Callable[[ClusterEvent], Collection[str] | None] | None = None
    """The claims whose pods a change may help, unlike other equivalent pods; None if unknown.
    """
    other_names: Mapping[str, Explainer] = field(default_factory=dict)
    """Names in its refusals other than its own, and how those are explained."""
    optional: bool = True
    """Whether a profile may name it and leave it out."""
    default: bool = True
    """Whether the default profile has it."""
    node_fields: tuple[str, ...] = ()
    """The fields of a node that it reads; a change of other fields changes no answer."""
    pod_fields: tuple[str, ...] = ()
    """The fields of a pod that it reads beyond those that every signature has."""
    sign: Callable[[Pod], PluginFields] | None = None
    """What it makes of a pod's fields, for its signature; nothing, if that is empty."""

    arguments: Arguments[Any] | None = None
    """How its arguments are written, checked and compiled; None if it takes none."""

    pre_enqueue: PreFilter | None = None
    """Refuses a pod that kube-scheduler does not even queue."""
    pre_filter: PreFilter | None = None
    """Refuses a pod before any node is evaluated."""
    steps_before_nodes: Callable[[ClusterState, Pod], Iterable[Step]] | None = None
    """Proposes steps for a pod that is refused so."""
    pre_filter_result: CompileFilter | None = None
    """Restricts the nodes that are evaluated (PreFilterResult)."""
    can_pin: Callable[[EvaluationRequest], bool] | None = None
    """Whether this plugin alone keeps a pod that names one node off all others."""
    post_filter: PostFilter | None = None
    """What it reports of a pod that fits nowhere, before preemption is tried."""
    can_judge_all: bool = True
    """Whether it can judge every node."""
    filters: tuple[CompileFilter, ...] = ()
    score: CompileScore | None = None
    weight: int = 1
    """What its score weighs by default."""
    capacity: Capacity | None = None
    """The capacity of nodes that it counts, and what pods use of it."""
    has_other_rules: Callable[[EvaluationRequest], bool] | None = None
    """Whether more than its capacity and their signature decides about such pods."""
    bind_timeout: Callable[[PluginSet], float] | None = None
    """How long it may take to prepare what a pod is bound with, in seconds."""
    hints: Hints = field(default_factory=dict)
    """The changes that may help a pod that it refused, by kind of object."""
