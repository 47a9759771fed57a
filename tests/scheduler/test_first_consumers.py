"""Claims that wait for their first consumer are bound as decided, or not at all.

The tests play the part of the volume controller, which this cluster has not.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from bayplan.client import Client, Untyped, merge
from bayplan.fit.plugins.volume_binding import BindTimeout
from bayplan.kube.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from bayplan.scheduler.config import SchedulerSettings, default_settings
from tests.scheduler.running_scheduler import RunningScheduler, node, pod, scheduling

CLASS = "bayplan-waits"


@pytest.fixture
async def waiting_class(client: Client) -> str:
    await client.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": CLASS},
            "provisioner": "example.com/made-by-test",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    return CLASS


def claim(namespace: str, name: str) -> Untyped:
    asked = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "storageClassName": CLASS,
            "accessModes": ["ReadWriteOnce"],
            "resources": asked,
        },
    }


def volume(name: str, node_name: str) -> Untyped:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": CLASS,
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def pod_with(namespace: str, name: str, claim_name: str) -> Untyped:
    source = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}
    return pod(namespace, name, volumes=[source])


def claim_of(it: RunningScheduler, namespace: str, name: str) -> PersistentVolumeClaim:
    return it.live.cached(PersistentVolumeClaim)[f"{namespace}/{name}"]


async def complete(client: Client, namespace: str, name: str, volume_name: str) -> None:
    """Do what the volume controller does."""
    change: Untyped = {
        "metadata": {"annotations": {BIND_COMPLETED: "yes"}},
        "spec": {"volumeName": volume_name},
    }
    await client.patch(PersistentVolumeClaim, namespace, name, change=merge(change))


def impatient(seconds: float) -> SchedulerSettings:
    settings = default_settings(["bayplan"])
    (profile,) = settings.profiles
    hasty = replace(profile, args=(BindTimeout(seconds),))
    return replace(settings, profiles=(hasty,))


async def test_a_claim_gets_the_volume_that_was_decided(
    client: Client, namespace: str, waiting_class: str
) -> None:
    for name in ("bayplan-a", "bayplan-b"):
        await client.create(node(name))
    await client.create(volume("bayplan-v", "bayplan-b"))
    available = merge({"status": {"phase": "Available"}})
    await client.patch(PersistentVolume, "bayplan-v", change=available, subresource="status")
    await client.create(claim(namespace, "data"))
    async with scheduling(client) as it:
        volumes = it.live.cached(PersistentVolume)
        await client.create(pod_with(namespace, "p", "data"))
        await it.until(lambda: volumes["bayplan-v"].spec.claim_ref is not None)
        reference = volumes["bayplan-v"].spec.claim_ref
        assert reference is not None
        assert (reference.namespace, reference.name) == (namespace, "data")
        assert reference.uid == claim_of(it, namespace, "data").metadata.uid
        assert it.node_of(namespace, "p") == ""  # not before its claim is bound
        await complete(client, namespace, "data", "bayplan-v")
        assert await it.placed(namespace, "p") == ["bayplan-b"]


async def test_a_volume_is_made_where_its_pod_goes(
    client: Client, namespace: str, waiting_class: str
) -> None:
    await client.create(node("bayplan-a"))
    await client.create(claim(namespace, "data"))
    async with scheduling(client) as it:
        await client.create(pod_with(namespace, "p", "data"))
        await it.until(lambda: _selected(it, namespace) == "bayplan-a")
        await client.create(volume("bayplan-made", "bayplan-a"))
        await complete(client, namespace, "data", "bayplan-made")
        assert await it.placed(namespace, "p") == ["bayplan-a"]


async def test_what_takes_too_long_is_taken_back(
    client: Client, namespace: str, waiting_class: str
) -> None:
    await client.create(node("bayplan-a"))
    await client.create(claim(namespace, "data"))
    async with scheduling(client, impatient(0.2)) as it:
        await client.create(pod_with(namespace, "p", "data"))
        await it.until(lambda: _selected(it, namespace) == "bayplan-a")
        await it.until(lambda: _selected(it, namespace) == "")
        await it.until(lambda: "timed out" in it.condition_message(namespace, "p"))
        # A second try finds the provisioner awake.
        await it.until(lambda: _selected(it, namespace) == "bayplan-a")
        await client.create(volume("bayplan-made", "bayplan-a"))
        await complete(client, namespace, "data", "bayplan-made")
        assert await it.placed(namespace, "p") == ["bayplan-a"]


async def test_a_provisioner_that_says_no_sends_the_pod_elsewhere(
    client: Client, namespace: str, waiting_class: str
) -> None:
    await client.create(node("bayplan-a"))
    await client.create(claim(namespace, "data"))
    async with scheduling(client) as it:
        await client.create(pod_with(namespace, "p", "data"))
        await it.until(lambda: _selected(it, namespace) == "bayplan-a")
        no = merge({"metadata": {"annotations": {SELECTED_NODE: None}}})
        await client.patch(PersistentVolumeClaim, namespace, "data", change=no)
        await it.until(lambda: "no volume was made" in it.condition_message(namespace, "p"))
        await it.until(lambda: _selected(it, namespace) == "bayplan-a")
        await client.create(volume("bayplan-made", "bayplan-a"))
        await complete(client, namespace, "data", "bayplan-made")
        await it.placed(namespace, "p")


def _selected(it: RunningScheduler, namespace: str) -> str:
    return claim_of(it, namespace, "data").metadata.annotations.get(SELECTED_NODE, "")
