"""The record of a plugin: everything that is known of it, and all that others ask.

A plugin is one module (or folder) of this package with a `PLUGIN` of this type. The registry lists
them; nothing outside this package names a plugin or knows what its messages say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from bayplan.fit.events import Event
from bayplan.fit.fixes import Step
from bayplan.fit.plugins.base import Arrival, Filter, Question
from bayplan.fit.plugins.capacity import Capacity
from bayplan.fit.plugins.hints import Hints
from bayplan.fit.plugins.scores import Score
from bayplan.fit.plugins.trial import UNEXPLAINED, Explaining
from bayplan.fit.refusal import Refusal
from bayplan.fit.signatures.plugin_reads import Signed
from bayplan.fit.state.cluster import Cluster
from bayplan.kube.pods import Pod


class Cause(Enum):
    """What a pod waits for."""

    QUEUE = "queue"
    """Its queue has not let it in."""
    GATE = "gate"
    """Somebody has yet to take a scheduling gate off it."""
    SCHEDULER = "scheduler"
    """It fits a node, and its scheduler has not placed it."""
    RESOURCES = "resources"
    VOLUMES = "volumes"
    """Claims, places to attach, drivers, or a volume's own whereabouts."""
    AFFINITY = "affinity"
    """Affinity to nodes or pods."""
    SPREAD = "spread"
    """The spread of pods over domains."""
    TAINTS = "taints"
    """Taints that it does not tolerate; a cordon is one."""
    PORTS = "ports"
    """Ports of the host that others have."""
    DEVICES = "devices"
    """Claims to devices."""
    NODES = "nodes"
    """There are none."""
    UPCOMING = "upcoming"
    """A node that is on its way has room for it."""
    OTHER = "other"


Point = Literal["pre_filter", "filter", "pre_score", "score", "reserve", "pre_bind"]
FILTERING: tuple[Point, ...] = ("pre_filter", "filter")
SCORING: tuple[Point, ...] = ("pre_score", "score")
BINDING: tuple[Point, ...] = ("reserve", "pre_bind")

CompileFilter = Callable[[Question], Filter | None]
"""The filter for a question; None if it has nothing to say of the pod."""
CompileScore = Callable[[Question], Score | None]
"""The same for scores."""
Refuse = Callable[[Arrival], Refusal | None]
"""Why a pod is refused whatever node it is; None if nodes are to be asked."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plugin:
    """A plugin of the scheduling framework."""

    name: str
    """kube-scheduler's."""
    points: tuple[Point, ...]
    """kube-scheduler's extension points that it has, beside those for events."""
    cause: Cause = Cause.OTHER
    """What a pod waits for that it refuses."""
    node_labels: Callable[[Pod], frozenset[str]] | None = None
    """The labels of nodes that it reads of a pod's own rules."""
    explaining: Explaining = UNEXPLAINED
    """How its refusals are explained."""
    for_good: bool = False
    """Whether what it refuses on a node with nothing on it, it refuses for good."""
    names_drivers: bool = False
    """Whether its filter says over volumes of which drivers it refuses."""
    sets_apart: Callable[[Event], Collection[str] | None] | None = None
    """The claims whose pods a change may help, or not, unlike others that are refused alike; None
    if that cannot be said.
    """
    other_names: Mapping[str, Explaining] = field(default_factory=dict)
    """What its refusals are told by, where that is not its name, and how those are explained."""
    optional: bool = True
    """Whether a profile may leave it out, and names it at all."""
    default: bool = True
    """Whether the default profile has it."""
    node_fields: tuple[str, ...] = ()
    """The fields of a node that it reads; if none of any plugin's changes, no answer does."""
    signs: Callable[[Pod], Signed] | None = None
    """What it reads of a pod beyond what every signature has; nothing, if that is empty."""

    pre_enqueue: Refuse | None = None
    """Refuses a pod that kube-scheduler would not even queue."""
    pre_filter: Refuse | None = None
    """Refuses a pod before any node is looked at."""
    steps_before_nodes: Callable[[Cluster, Pod], Iterable[Step]] | None = None
    """Steps that might help a pod that is refused so."""
    narrow: CompileFilter | None = None
    """Leaves nodes out that are then not even asked (PreFilterResult)."""
    pins: Callable[[Question], bool] | None = None
    """Whether a pod that names one node besides is kept off all others by this plugin alone."""
    deallocates_claims: bool = False
    """Whether it takes back claims for a pod that fits nowhere (PostFilter)."""
    judges_all: bool = True
    """Whether it can say of every node if it may take a pod."""
    filters: tuple[CompileFilter, ...] = ()
    score: CompileScore | None = None
    weight: int = 1
    """What its score weighs by default."""
    capacity: Capacity | None = None
    """How much of what it counts a node has, and what pods take of it."""
    hints: Hints = field(default_factory=dict)
    """The changes that may help a pod that it refused, by kind of object."""
