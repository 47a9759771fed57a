"""The costs of the ledger: 5,000 queues in a tree of depth 4, without a cluster around them.

Each leaf has groups; some run, some wait for quota. Measured are building the ledger, one pod
that is created, deleted or placed, the check whether there is quota, and the next of all queues.
Nothing waits for anything, so processor time is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count

from bayplan.kube.meta import ObjectMeta, Quantity
from bayplan.kube.pods import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from bayplan.kube.volcano import (
    GROUP_NAME_ANNOTATIONS,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
    Queue,
    QueueSpec,
)
from bayplan.queues import Ledger, QueuePolicyName, Resources, TaskStatus
from bayplan.queues.queue_heap import QueueHeap
from bench.measure import Result

FAN_OUT = (9, 8, 8, 8)
"""Children of the root, of theirs, and so on: 5,265 queues, of which 4,608 are leaves."""
GROUPS = 2
"""Groups in each leaf."""
TIMES = 2000
RUNS = 3


def cases() -> Iterator[Result]:
    """Yield all figures of the ledger."""
    start = time.process_time()
    ledger, leaves = _ledger()
    _ = ledger.accounts
    yield Result("queues/ledger/build", time.process_time() - start, "s")
    yield Result("queues/ledger/queues", len(ledger.tree.nodes), "queues")
    yield Result("queues/ledger/pod", _cost(_pod_changes(ledger, leaves)), "us")
    yield Result("queues/ledger/place", _cost(_placements(ledger, leaves)), "us")
    yield Result("queues/ledger/quota", _cost(_quota_checks(ledger, leaves)), "us")
    yield Result("queues/ledger/status", _cost(_statuses(ledger, leaves)), "us")
    yield Result("queues/ledger/turn", _turns(ledger, leaves), "us")
    yield Result("queues/ledger/weights", _weights(), "ms")


def _ledger(policy: QueuePolicyName = "capacity") -> tuple[Ledger, list[str]]:
    ledger = Ledger(policy=policy)
    level = [""]
    for width in FAN_OUT:
        level = [f"{parent}{'-' * bool(parent)}{n}" for parent in level for n in range(width)]
        for name in level:
            ledger.put_queue(_queue(name))
    for leaf in level:
        for number in range(GROUPS):
            ledger.put_group(_group(leaf, number))
            ledger.put_pod(_pod(leaf, number, "p", running=number == 0))
    return ledger, level


def _queue(name: str) -> Queue:
    amounts: dict[str, Quantity] = {"cpu": "1000000", "memory": "1000Ti"}
    spec = QueueSpec(parent=name.rpartition("-")[0], capability=amounts, deserved=amounts)
    return Queue(metadata=ObjectMeta(name=name), spec=spec)


def _group(leaf: str, number: int) -> PodGroup:
    needs: dict[str, Quantity] = {"cpu": "1", "memory": "1Gi"}
    spec = PodGroupSpec(min_member=1, queue=leaf, min_resources=needs)
    meta = ObjectMeta(namespace="default", name=f"g-{leaf}-{number}")
    phase = "Inqueue" if number else "Running"
    return PodGroup(metadata=meta, spec=spec, status=PodGroupStatus(phase=phase))


def _pod(leaf: str, number: int, name: str, *, running: bool) -> Pod:
    key = f"g-{leaf}-{number}"
    requests = ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"})
    spec = PodSpec(containers=[Container(name="c", resources=requests)])
    spec.node_name = "n" if running else ""
    annotations = {GROUP_NAME_ANNOTATIONS[0]: key}
    meta = ObjectMeta(namespace="default", name=f"{key}-{name}", uid=name, annotations=annotations)
    return Pod(
        metadata=meta, spec=spec, status=PodStatus(phase="Running" if running else "Pending")
    )


def _pod_changes(ledger: Ledger, leaves: list[str]) -> Callable[[], None]:
    """Return a function that adds a pod and deletes it."""
    pods = [_pod(leaf, 0, "new", running=True) for leaf in leaves[:TIMES]]
    turn = count()

    def one() -> None:
        pod = pods[next(turn) % len(pods)]
        ledger.put_pod(pod)
        ledger.delete_pod(pod.key)

    return one


def _placements(ledger: Ledger, leaves: list[str]) -> Callable[[], None]:
    """Return a function that ungates a pod, places it and withdraws it."""
    members = [ledger.members[f"default/g-{leaf}-1-p"] for leaf in leaves[:TIMES]]
    turn = count()

    def one() -> None:
        member = members[next(turn) % len(members)]
        ledger.reserve(member)
        ledger.move(member, TaskStatus.BINDING)
        ledger.move(member, TaskStatus.PENDING)

    return one


def _quota_checks(ledger: Ledger, leaves: list[str]) -> Callable[[], None]:
    """Return a function that checks the quota for a group, and for a pod."""
    members = [ledger.members[f"default/g-{leaf}-1-p"] for leaf in leaves[:TIMES]]
    turn = count()

    def one() -> None:
        member = members[next(turn) % len(members)]
        ledger.may_enqueue(ledger.groups[member.group])
        ledger.may_allocate(member)

    return one


def _statuses(ledger: Ledger, leaves: list[str]) -> Callable[[], None]:
    """Return a function that updates a queue's status."""
    queues = [_queue(leaf) for leaf in leaves[:TIMES]]
    turn = count()

    def one() -> None:
        number = next(turn)
        queue = queues[number % len(queues)]
        queue.status.pending = number
        ledger.put_queue(queue)

    return one


def _turns(ledger: Ledger, leaves: list[str]) -> float:
    """Microseconds of one turn of one queue among all, in which a pod of it is placed."""
    heap = QueueHeap(ledger)
    for leaf in leaves:
        heap.add(leaf)
    start = time.process_time()
    for _ in range(TIMES):
        first = heap.first()
        ledger.move(ledger.members[f"default/g-{first}-1-p"], TaskStatus.BINDING)
    return (time.process_time() - start) / TIMES * 1e6


def _weights() -> float:
    """Milliseconds until it is known again what all deserve by weight, after one pod has come."""
    ledger, leaves = _ledger("proportion")
    ledger.set_shared(Resources({"cpu": 10**6, "memory": 10**12, "pods": 10**4}))
    best = float("inf")
    for number in range(RUNS):
        ledger.put_pod(_pod(leaves[0], 1, f"more-{number}", running=False))
        start = time.process_time()
        ledger.share(leaves[0])
        best = min(best, time.process_time() - start)
    return best * 1e3


def _cost(one: Callable[[], None]) -> float:
    """Microseconds of doing something once."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        for _ in range(TIMES):
            one()
        best = min(best, (time.process_time() - start) / TIMES)
    return best * 1e6
