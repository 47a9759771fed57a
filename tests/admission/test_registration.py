"""The webhook's own configurations: narrow, made if they are missing, otherwise left alone but for
what is the webhook's to keep up."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from cryptography import x509

from bayplan.admission.certificates import CertificateLifetimes, SharedSecret
from bayplan.admission.configurations import (
    MUTATING,
    VALIDATING,
    Installer,
    Registration,
    corrections,
    mutating,
    trusting,
    validating,
)
from bayplan.admission.daemon import WebhookDaemon
from bayplan.admission.rules import AdmissionSettings
from bayplan.client import Client, Untyped, merge
from bayplan.client.errors import InvalidError
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.kube.pods import Pod
from bayplan.lab import VirtualLab
from tests.admission.manifests import install_kinds
from tests.admission.reviews import GATE
from tests.admission.test_kinds import PODGROUPS, QUEUES

pytestmark = pytest.mark.whole


OURS = Registration()
CA = b"-----an authority-----"


def hooks(configuration: Untyped) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", configuration["webhooks"])


def test_no_webhook_waits_for_its_own_start() -> None:
    for registration in (OURS, replace(OURS, namespace="batch")):
        for hook in (*hooks(mutating(registration)), *hooks(validating(registration))):
            (only,) = hook["namespaceSelector"]["matchExpressions"]
            assert only["operator"] == "NotIn"
            assert {"kube-system", registration.namespace} == set(only["values"])
            assert hook["sideEffects"] == "None"
            assert hook["timeoutSeconds"] <= 10


def test_the_policy_is_for_all_but_bookkeeping() -> None:
    for policy, expected in ((None, "Fail"), ("Fail", "Fail"), ("Ignore", "Ignore")):
        registration = replace(OURS, policy=cast("Any", policy))
        found = {hook["name"]: hook["failurePolicy"] for hook in hooks(validating(registration))}
        assert found.pop("states.queues.webhook.bayplan.io") == "Ignore"
        assert found.pop("updates.podgroups.webhook.bayplan.io") == "Ignore"
        assert set(found.values()) == {expected}


def test_what_is_right_is_not_written() -> None:
    wanted = validating(OURS)
    assert not corrections(trusting(wanted, CA), wanted, CA, with_policy=True)
    assert not corrections(wanted, wanted, b"", with_policy=False)


def test_only_the_authority_of_our_own_hooks_is_changed() -> None:
    found = trusting(mutating(OURS), b"another")
    foreign = deepcopy(hooks(found)[0])
    foreign["name"] = "somebody.example.com"
    found["webhooks"] = [foreign, hooks(found)[0]]
    changes = corrections(found, mutating(OURS), CA, with_policy=False)
    path = "/webhooks/1/clientConfig/caBundle"
    name = {"op": "test", "path": "/webhooks/1/name", "value": "gate.pods.webhook.bayplan.io"}
    assert changes == [name, {"op": "add", "path": path, "value": base64.b64encode(CA).decode()}]


def test_a_policy_that_was_asked_for_is_written() -> None:
    found = trusting(mutating(OURS), CA)
    wanted = mutating(replace(OURS, policy="Ignore"))
    assert not corrections(found, wanted, CA, with_policy=False)
    _, change = corrections(found, wanted, CA, with_policy=True)
    assert change == {"op": "add", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}


@pytest.mark.parametrize("key", ["inject-ca-from", "inject-apiserver-ca", "inject-ca-from-secret"])
def test_what_cert_manager_injects_is_left_alone(key: str) -> None:
    found = trusting(mutating(OURS), b"theirs")
    found["metadata"] = {"name": "x", "annotations": {f"cert-manager.io/{key}": "a/b"}}
    assert not corrections(found, mutating(OURS), CA, with_policy=False)


@pytest.mark.virtual
async def test_other_fields_of_a_configuration_stay() -> None:
    async with VirtualLab(ClusterSpec()) as lab:
        client = lab.client()
        mine = mutating(OURS)
        del hooks(mine)[0]["matchConditions"]
        mine["metadata"] = {"name": OURS.name, "labels": {"kept": "yes"}}
        hooks(mine)[0].update(timeoutSeconds=3, failurePolicy="Ignore")
        await client.create(mine, MUTATING)
        assert await Installer(OURS).install(client, CA)
        found = await client.get(MUTATING, OURS.name)
        assert cast("Mapping[str, Any]", found["metadata"])["labels"] == {"kept": "yes"}
        (hook,) = hooks(found)
        assert (hook["timeoutSeconds"], hook["failurePolicy"]) == (3, "Ignore")
        assert base64.b64decode(hook["clientConfig"]["caBundle"]) == CA
        assert not await Installer(OURS).install(client, CA)


# -- the daemon in virtual time -------------------------------------------------------------------


def daemon(lifetimes: CertificateLifetimes | None = None, **options: Any) -> WebhookDaemon:
    names = ("bayplan-webhook.kube-system.svc",)
    source = SharedSecret(OURS.namespace, OURS.name, names, lifetimes or CertificateLifetimes())
    return WebhookDaemon(AdmissionSettings(), OURS, source, **options)


def opted_in(name: str, annotations: dict[str, str] | None = None) -> Untyped:
    meta = {"name": name, "namespace": "default", "annotations": annotations or {GATE: "true"}}
    spec = {"schedulerName": "bayplan", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def gates_of(client: Client, name: str) -> list[str]:
    await client.create(opted_in(name))
    found = await client.get(Pod, "default", name)
    return [gate.name for gate in found.spec.scheduling_gates]


@pytest.mark.virtual
async def test_a_webhook_in_virtual_time_gates_and_refuses() -> None:
    hook = daemon()
    async with VirtualLab(ClusterSpec(), [hook.lead], webhooks={hook.service: hook.app}) as lab:
        client = lab.client()
        await install_kinds(client)
        await lab.run(until=60)
        assert hook.ready.is_set()
        assert await gates_of(client, "a") == [GATE]
        await client.create({"metadata": {"name": "top"}, "spec": {}}, QUEUES)
        await lab.forward(1)
        child: Untyped = {"metadata": {"name": "child"}, "spec": {"parent": "top"}}
        await client.create(child, QUEUES)
        await lab.forward(1)
        with pytest.raises(InvalidError, match="'nobody', which does not exist"):
            await client.create({"metadata": {"name": "x"}, "spec": {"parent": "nobody"}}, QUEUES)
        named = {"name": "g", "namespace": "default"}
        with pytest.raises(InvalidError, match="only leaves take work"):
            await client.create({"metadata": named, "spec": {"queue": "top"}}, PODGROUPS)
        with pytest.raises(Exception, match="queue top has queues below it: child"):
            await client.delete(QUEUES, "top")
        await client.create({"metadata": named, "spec": {"queue": "child"}}, PODGROUPS)


@pytest.mark.virtual
async def test_kinds_that_come_later_are_followed() -> None:
    hook = daemon()
    async with VirtualLab(ClusterSpec(), [hook.lead], webhooks={hook.service: hook.app}) as lab:
        client = lab.client()
        await lab.run(until=600)
        assert await gates_of(client, "a") == [GATE]
        assert not hook.app.knows_queues.is_set()
        await install_kinds(client)
        await lab.forward(120)
        assert hook.app.knows_queues.is_set()


@pytest.mark.virtual
async def test_replicas_renew_certificates_for_weeks() -> None:
    lifetimes = CertificateLifetimes(serving=timedelta(hours=30), authority=timedelta(days=6))
    replicas = [daemon(lifetimes, check_seconds=3600.0) for _ in range(2)]
    app = replicas[0].app
    async with VirtualLab(
        ClusterSpec(), [one.lead for one in replicas], webhooks={replicas[0].service: app}
    ) as lab:
        client, seen = lab.client(), set()
        await install_kinds(client)
        for day in range(1, 15):
            await lab.run(until=day * 86_400)
            shown = {_serial(one) for one in replicas}
            seen |= shown
            await _each_is_trusted(client, replicas)
        assert len(seen) >= 12
        assert await gates_of(client, "a") == [GATE]


@pytest.mark.virtual
async def test_what_somebody_took_away_comes_back() -> None:
    hook = daemon()
    async with VirtualLab(ClusterSpec(), [hook.lead], webhooks={hook.service: hook.app}) as lab:
        client = lab.client()
        await lab.run(until=10)
        await client.delete(MUTATING, OURS.name)
        taken = [{**one, "clientConfig": {"service": one["clientConfig"]["service"]}}
                 for one in hooks(await client.get(VALIDATING, OURS.name))]  # fmt: skip
        await client.patch(VALIDATING, OURS.name, change=merge({"webhooks": taken}))
        await lab.forward(31)
        await _each_is_trusted(client, [hook])


def _serial(one: WebhookDaemon) -> int:
    shown = one._served
    assert shown is not None
    return x509.load_pem_x509_certificate(shown.pair.certificate).serial_number


async def _each_is_trusted(client: Client, replicas: list[WebhookDaemon]) -> None:
    """Whatever a replica shows, every webhook in the cluster's configurations trusts."""
    now = client.clock.now()
    found = [await client.get(kind, OURS.name) for kind in (MUTATING, VALIDATING)]
    for one in replicas:
        assert one._served is not None
        leaf = x509.load_pem_x509_certificate(one._served.pair.certificate)
        assert leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc
        for hook in (hook for configuration in found for hook in hooks(configuration)):
            bundle = base64.b64decode(hook["clientConfig"]["caBundle"])
            roots = x509.load_pem_x509_certificates(bundle)
            assert any(_signed(leaf, root) and root.not_valid_after_utc > now for root in roots)


def _signed(leaf: x509.Certificate, root: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(root)
    except Exception:  # noqa: BLE001 - whatever it is, it did not
        return False
    return True
