"""The recorded queue cases played through the live scheduler.

The objects of a case are put into the store of an embedded API server as they were recorded, with
their times, phases and deletions; the scheduler runs in virtual time until it is quiet, and what
the server then says is compared with what a cycle by our rules decides, and with what Volcano did.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from bayplan.client import Client
from bayplan.client.errors import AlreadyExistsError
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.fit import Snapshot
from bayplan.kube.codec import decode_object
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup
from bayplan.lab import VirtualLab
from bayplan.queues import NOTHING, Ledger
from bayplan.queues.actions import act
from bayplan.queues.placement import SnapshotPlacement
from bayplan.queues.queue_snapshot import fill, priorities_in
from bayplan.queues.resources import node_amounts
from bayplan.queues.session import Session
from bayplan.scheduler.config import QueueSettings, default_settings
from tests.oracle.corpus import QueueCase
from tests.scheduler.batch import objects
from tests.scheduler.batch.test_random_queues import NOBODY
from tests.scheduler.running_scheduler import scheduling

QUIET = 60.0
"""Seconds in which all is decided that can be: no reservation has ended, nobody is impatient."""
SCHEDULER = "volcano"
PLURALS = {
    "Node": ("", "v1", "nodes"),
    "PriorityClass": ("scheduling.k8s.io", "v1", "priorityclasses"),
    "Queue": ("scheduling.volcano.sh", "v1beta1", "queues"),
    "PodGroup": ("scheduling.volcano.sh", "v1beta1", "podgroups"),
    "Pod": ("", "v1", "pods"),
}
"""The kinds of the corpus, in the order in which they are made."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: groups and pods by their keys."""

    admitted: frozenset[str]
    placed: frozenset[str]
    ungated: frozenset[str]
    evicted: frozenset[str]

    def differences(self, other: Outcome) -> Iterator[str]:
        """What is so in one and not in the other."""
        for name in ("admitted", "placed", "ungated", "evicted"):
            for key in sorted(getattr(self, name) ^ getattr(other, name)):
                yield f"{name} {key}"


async def live_outcome(case: QueueCase) -> Outcome:
    """What the live scheduler comes to."""
    settings = default_settings([SCHEDULER])
    settings = replace(settings, queues=QueueSettings(case.plugin, 600.0))
    async with VirtualLab(NOBODY) as lab:
        client = lab.client()
        await objects.install_kinds(client)
        for name in {one["metadata"].get("namespace", "default") for one in case.objects}:
            await _make_namespace(client, name)
        for one in sorted(case.objects, key=lambda one: list(PLURALS).index(one["kind"])):
            await _put(lab, client, one)
        async with scheduling(client, settings):
            await lab.forward(QUIET)
            return await _said(client, case)


async def _make_namespace(client: Client, name: str) -> None:
    with suppress(AlreadyExistsError):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def _put(lab: VirtualLab, client: Client, one: dict[str, Any]) -> None:
    """Make an object as the server does, and let it be as old, and in the state, as recorded."""
    kind = lab.plane.catalog.find(*PLURALS[one["kind"]])
    assert kind is not None
    meta, store = one["metadata"], lab.plane.store
    key = ObjectKey(kind.storage, meta.get("namespace", ""), meta["name"])
    if store.get(key) is None:
        fresh = {name: meta[name] for name in meta if name not in _BY_SERVER}
        spec = {name: one["spec"][name] for name in one.get("spec", {}) if name != _OWN}
        await client.create({**one, "metadata": fresh, **({"spec": spec} if spec else {})})
    entry = store.get(key)
    assert entry is not None
    made = deepcopy(entry.object())
    if _OWN in one.get("spec", {}):
        made["spec"][_OWN] = one["spec"][_OWN]
    made["metadata"].update(meta)
    made["status"] = {**made.get("status", {}), **one.get("status", {})}
    store.put(key, made, entry)


_OWN = "preemptionPolicy"
"""What a PriorityClass says for its pods, and recorded pods say for themselves."""
_BY_SERVER = {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}


async def _said(client: Client, case: QueueCase) -> Outcome:
    pods = {one.key: one for one in (await client.list(Pod)).items}
    groups = (await client.list(PodGroup)).items
    recorded = {_key(one): one for one in case.objects}
    before = {
        key
        for key, one in recorded.items()
        if one["kind"] == "Pod" and "deletionTimestamp" in one["metadata"]
    }
    known = {key for key, one in recorded.items() if one["kind"] == "Pod"}
    gated = {
        key
        for key, one in recorded.items()
        if one["kind"] == "Pod" and one["spec"].get("schedulingGates")
    }
    return Outcome(
        admitted=frozenset(one.key for one in groups if one.status.phase not in {"", "Pending"}),
        placed=frozenset(key for key, one in pods.items() if one.spec.node_name),
        ungated=frozenset(
            key for key in gated if key in pods and not pods[key].spec.scheduling_gates
        ),
        evicted=frozenset(
            key for key in known - before if key not in pods or pods[key].is_terminating
        ),
    )


def _key(one: dict[str, Any]) -> str:
    meta = one["metadata"]
    return f"{meta.get('namespace', '')}/{meta['name']}"


def cycle_outcome(case: QueueCase) -> Outcome:
    """What one cycle by our rules decides, as `bayplan queues --next` shows it."""
    found = [decode_object(one) for one in case.objects]
    pods = [one for one in found if isinstance(one, Pod)]
    nodes = sum((node_amounts(one) for one in found if isinstance(one, Node)), NOTHING)
    ledger = Ledger(policy=case.plugin, priority_of=priorities_in(found))
    ledger.set_shared(nodes)
    fill(ledger, found, lambda _: True)
    session = Session(ledger, SnapshotPlacement(Snapshot(found), ledger.leaving()))
    act(session)
    plan = session.plan
    with_node = {one.key for one in pods if one.spec.node_name}
    return Outcome(
        admitted=frozenset(key for key, one in ledger.groups.items() if not one.is_pending),
        placed=frozenset(with_node | {one.pod for one in plan.placed}),
        ungated=frozenset(plan.ungated),
        evicted=frozenset(one.pod for one in plan.evicted),
    )


def recorded_outcome(case: QueueCase, missing: Outcome) -> Outcome:
    """What Volcano did; where its runs disagree, as in another outcome."""
    known = _Recorded(case)
    return Outcome(
        admitted=known.keys("podgroups", "admitted", {True}, missing.admitted),
        placed=known.keys("pods", "state", _WITH_NODE, missing.placed),
        ungated=known.keys("pods", "gateRemoved", {True}, missing.ungated),
        evicted=known.keys("pods", "state", {"evicted"}, missing.evicted),
    )


_WITH_NODE = {"bound", "running", "evicted", "terminating"}


@dataclass(frozen=True, slots=True)
class _Recorded:
    case: QueueCase

    def keys(
        self, part: str, field: str, values: set[Any], missing: frozenset[str]
    ) -> frozenset[str]:
        """The keys of which that is recorded; where nothing is for sure, those of another set."""
        found = {key: one[field] for key, one in self.case.expected[part].items() if field in one}
        return frozenset(
            {key for key, value in found.items() if value in values} | (missing - found.keys())
        )
