"""Small clusters with queues, for decisions about them."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE, PodGroup, Queue
from bayplan.kube.workloads import PriorityClass
from bayplan.queues import QueuePolicyName, TaskStatus, read_amounts
from bayplan.queues.actions import IN_ORDER, Action
from bayplan.queues.placement import SnapshotPlacement
from bayplan.queues.rules import OURS, Rules
from bayplan.queues.session import CyclePlan, Session
from tests.builders import PodBuilder, make_node, make_pod, make_pod_group


def node(name: str, cpu: str) -> Node:
    """A node with so many cores."""
    return make_node(name).capacity(cpu=cpu, memory="64Gi", pods=110).obj()


def member(group: str, number: int, cpu: str = "1") -> PodBuilder:
    """A pod of a group."""
    pod = make_pod(f"{group}-w-{number}")
    return make_pod_group(group).member(pod.cpu(cpu) if cpu else pod)


def gated(pod: PodBuilder) -> Pod:
    """A pod that waits for its queue behind the gate."""
    asks = pod.annotation(QUEUE_SCHEDULING_GATE, "true")
    return asks.gate(QUEUE_SCHEDULING_GATE).obj()


def gang(group: str, pods: int, cpu: str = "1") -> list[Pod]:
    """Gated pods of a group."""
    return [gated(member(group, number, cpu)) for number in range(pods)]


class Cluster:
    """Objects, the ledger of their queues, and the nodes."""

    def __init__(
        self,
        objects: Iterable[KubeObject],
        *,
        policy: QueuePolicyName = "capacity",
        rules: Rules = OURS,
    ) -> None:
        everything = list(objects)
        self.snapshot = Snapshot(everything)
        classes = {one.name: one.value for one in everything if isinstance(one, PriorityClass)}
        self.rules = rules
        self.ledger = rules.ledger(policy=policy, priority_of=lambda name: classes.get(name, 0))
        self.put(everything)
        nodes = (one for one in everything if isinstance(one, Node))
        if policy == "proportion":
            shared = sum((read_amounts(one.status.allocatable) for one in nodes), read_amounts({}))
            self.ledger.set_shared(shared)

    def put(self, objects: Iterable[KubeObject]) -> None:
        """Tell the books of objects."""
        for one in objects:
            if isinstance(one, Queue):
                self.ledger.put_queue(one)
            elif isinstance(one, PodGroup):
                self.ledger.put_group(one)
            elif isinstance(one, Pod):
                self.ledger.put_pod(one)

    def session(self) -> Session:
        """The beginning of a cycle."""
        placement = SnapshotPlacement(self.snapshot, self.ledger.leaving())
        return self.rules.session(self.ledger, placement)

    def act(self, *actions: Action) -> CyclePlan:
        """What a cycle decides."""
        session = self.session()
        self.rules.act(session, actions or IN_ORDER)
        return session.plan

    def status(self, key: str) -> TaskStatus:
        """Where a pod stands."""
        return self.ledger.members[f"default/{key}"].status
