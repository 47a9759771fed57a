"""Every daemon with exactly its role, in virtual time: nothing is refused, and nothing is granted
that nobody uses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from bayplan.admission.certificates import SharedSecret
from bayplan.admission.configurations import Registration
from bayplan.admission.daemon import WebhookDaemon
from bayplan.admission.rules import AdmissionSettings
from bayplan.autoscaler.daemon import AutoscalerDaemon
from bayplan.client import Client, merge
from bayplan.client.daemon import elect
from bayplan.deploy.roles import BY_COMPONENT
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import Queue
from bayplan.lab import VirtualLab
from bayplan.lab.admission import with_queue_kinds
from bayplan.node.agent import LimitsAgent
from bayplan.node.decision import AttachLimitSettings
from bayplan.nodegroups import Provider
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.deploy.audit import Audit
from tests.deploy.manifests import rules

pytestmark = pytest.mark.whole


PARTS = ("scheduler", "autoscaler", "webhook", "node-limits")
SERVED = ("bayplan", "default-scheduler")
Permission = tuple[str, str, str, str]
"""Part, group, resource, verb."""
CLUSTER = b"""
seed: 7
csiDrivers: [{name: disk.csi.example.com}]
storageClasses:
  - {name: disks, driver: disk.csi.example.com, default: true}
instanceTypes: [{name: m5.large, cpu: 4, memory: 16Gi}]
nodeGroups:
  - name: g
    instanceType: m5.large
    count: 1
    min: 1
    max: 12
    drivers: [{name: disk.csi.example.com, limit: 4}]
workloads:
  - manifest:
      - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
      - apiVersion: v1
        kind: PersistentVolume
        metadata: {name: by-hand}
        spec:
          capacity: {storage: 1Gi}
          accessModes: [ReadWriteOnce]
          storageClassName: by-hand
          csi: {driver: disk.csi.example.com, volumeHandle: by-hand}
      - apiVersion: storage.k8s.io/v1
        kind: StorageClass
        metadata: {name: by-hand}
        provisioner: kubernetes.io/no-provisioner
        volumeBindingMode: WaitForFirstConsumer
      - apiVersion: v1
        kind: PersistentVolumeClaim
        metadata: {name: by-hand}
        spec:
          accessModes: [ReadWriteOnce]
          storageClassName: by-hand
          resources: {requests: {storage: 1Gi}}
      - apiVersion: v1
        kind: Pod
        metadata: {name: low}
        spec:
          terminationGracePeriodSeconds: 0
          nodeSelector: {kubernetes.io/hostname: g-1}
          containers: [{name: c, image: i, resources: {requests: {cpu: "2"}}}]
          volumes: [{name: v, persistentVolumeClaim: {claimName: by-hand}}]
  - at: 5m
    manifest:
      - apiVersion: v1
        kind: Pod
        metadata: {name: high}
        spec:
          priorityClassName: high
          nodeSelector: {kubernetes.io/hostname: g-1}
          containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]
  - at: 10m
    manifest:
      - apiVersion: scheduling.volcano.sh/v1beta1
        kind: Queue
        metadata: {name: research}
        spec: {capability: {cpu: "4"}}
      - apiVersion: batch/v1
        kind: Job
        metadata: {name: training}
        spec:
          parallelism: 2
          completions: 2
          template:
            metadata:
              annotations:
                simulation.bayplan.io/runs-for: 10m
                scheduling.volcano.sh/queue-name: research
                scheduling.volcano.sh/queue-allocation-gate: "true"
            spec:
              restartPolicy: Never
              containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]
      - apiVersion: apps/v1
        kind: StatefulSet
        metadata: {name: stored}
        spec:
          serviceName: stored
          replicas: 6
          podManagementPolicy: Parallel
          selector: {matchLabels: {app: stored}}
          template:
            metadata: {labels: {app: stored}}
            spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
          volumeClaimTemplates:
            - metadata: {name: data}
              spec:
                accessModes: [ReadWriteOnce]
                resources: {requests: {storage: 1Gi}}
"""
EXPLAINED: dict[Permission, str] = {
    ("scheduler", "*", "*", "get"): "a write that came too late, and on SIGUSR2 what differs, is"
    " looked at again: tests/scheduler/faults, `bayplan scheduler --compare`",
    (
        "autoscaler",
        "",
        "pods",
        "get",
    ): "an evicted pod that does not go: tests/autoscaler/scaledown",
    (
        "autoscaler",
        "",
        "configmaps",
        "get",
    ): "nodes whose drivers are missing: tests/autoscaler/actuation/test_missing_drivers.py",
    (
        "autoscaler",
        "bayplan.io",
        "nodegroups*",
        "*",
    ): "tests/autoscaler/providers/clusterapi, which has some",
    ("*", "events.k8s.io", "events", "patch"): "what is said again: tests/client/test_recorder.py",
    ("webhook", "*", "*", "patch"): "certificates that are renewed: tests/admission",
}
"""Patterns of what this cluster has no need of, and where it is needed."""


def granted() -> Iterator[Permission]:
    for part in PARTS:
        for rule in (*BY_COMPONENT[part].cluster, *BY_COMPONENT[part].own):
            for resource in rule.resources:
                for verb in rule.verbs:
                    yield part, rule.group, resource, verb


@asynccontextmanager
async def at_work(lab: VirtualLab, hook: WebhookDaemon) -> AsyncIterator[None]:
    """All daemons, each with its own account."""

    @asynccontextmanager
    async def cloud(_: Client) -> AsyncIterator[Provider]:
        yield lab.simulation.provider

    mains: dict[str, Callable[[Client], Awaitable[None]]] = {
        "webhook": hook.lead,
        "scheduler": _elected(SchedulerDaemon(default_settings(SERVED)).lead, "bayplan-scheduler"),
        "autoscaler": _elected(AutoscalerDaemon(cloud).lead, "cluster-autoscaler"),
        "node-limits": _elected(LimitsAgent(AttachLimitSettings).lead, "bayplan-node-limits"),
    }
    account = "system:serviceaccount:kube-system:bayplan-"
    tasks = [
        asyncio.ensure_future(main(lab.client(account + part))) for part, main in mains.items()
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) or one is None for one in ended), ended


def _elected(
    lead: Callable[[Client], Awaitable[None]], lease: str
) -> Callable[[Client], Awaitable[None]]:
    main = elect(lead, lease)
    return lambda client: main(client, "me")


@pytest.mark.virtual
async def test_every_daemon_has_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    spec, audit = with_queue_kinds(parse_cluster(CLUSTER, "cluster", tmp_path)), Audit()
    registration = Registration(schedulers=SERVED)
    names = ("bayplan-webhook.kube-system.svc",)
    source = SharedSecret(registration.namespace, registration.name, names)
    hook = WebhookDaemon(AdmissionSettings(frozenset(SERVED)), registration, source)
    lab = VirtualLab(spec, webhooks={hook.service: hook.app}, audit=audit)
    async with lab:
        admin = lab.client()
        for one in rules(*PARTS):
            await admin.create(one)
        async with at_work(lab, hook):
            await lab.run(15 * 60)
            phases = {one.name: one.status.phase for one in (await admin.list(Pod)).items}
            assert "low" not in phases
            assert phases["high"] == "Running"
            most = len((await admin.list(Node)).items)
            assert most > 1
            more = merge({"spec": {"capability": {"cpu": "8"}}})
            await admin.patch(Queue, "research", change=more)
            await lab.forward(60 * 60)
            assert any(one.verb == "create" and "eviction" in one.resource for one in audit.allowed)
    assert not audit.refused
    used = {
        (one.account.removeprefix("bayplan-"), one.group, one.resource, one.verb)
        for one in audit.allowed
    }
    # A server that does not stream what there is (WatchList) is asked for a list before a watch.
    lists = {(*one[:3], "list") for one in used if one[3] == "watch"}
    unused = set(granted()) - used - lists
    assert not {one for one in unused if not any(_is(one, pattern) for pattern in EXPLAINED)}
    stale = [one for one in EXPLAINED if not any(_is(found, one) for found in unused)]
    assert not stale


def _is(one: Permission, pattern: Permission) -> bool:
    return all(fnmatchcase(*pair) for pair in zip(one, pattern, strict=True))
