"""Webhooks that cannot answer, autoscalers that are two, and node groups of the cluster."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest

from bayplan.client.serving.certificates import CertificateAuthority
from bayplan.kube.coordination import Lease, LeaseSpec
from bayplan.kube.meta import KubeObject, ObjectMeta
from bayplan.kube.registrations import (
    MutatingWebhookConfiguration,
    NodeGroup,
    ServiceReference,
    ValidatingWebhookConfiguration,
    Webhook,
    WebhookClientConfig,
)
from tests.builders import make_service
from tests.checks.clusters import DISK, NEW, NOW, OLD, codes, healthy, look


def bundle(ends: timedelta) -> str:
    """A certificate that ends so long after now."""
    made = CertificateAuthority.create(NOW - timedelta(days=2), timedelta(days=2) + ends)
    return base64.b64encode(made.pair.certificate).decode()


SOUND = timedelta(days=10)


def webhook(
    ca: str | None,
    policy: str = "Fail",
    created: str = OLD,
    kind: type[
        MutatingWebhookConfiguration | ValidatingWebhookConfiguration
    ] = MutatingWebhookConfiguration,
) -> KubeObject:
    service = ServiceReference(namespace="kube-system", name="hook")
    config = WebhookClientConfig(service=service, ca_bundle=ca)
    hook = Webhook(name="gate.example.com", client_config=config, failure_policy=policy)
    return kind(metadata=ObjectMeta(name="hook", creation_timestamp=created), webhooks=[hook])


SERVICE = make_service("hook", "kube-system").obj()
OTHER = make_service("other", "kube-system").obj()


@pytest.mark.parametrize("kind", [MutatingWebhookConfiguration, ValidatingWebhookConfiguration])
def test_a_webhook_whose_service_does_not_exist(
    kind: type[MutatingWebhookConfiguration | ValidatingWebhookConfiguration],
) -> None:
    sound = bundle(SOUND)
    (one,) = look([*healthy(), OTHER, webhook(sound, kind=kind)])
    assert one.kind.code == "WebhookWithoutService"
    assert one.examples[0].detail == "service kube-system/hook"
    assert codes([*healthy(), SERVICE, webhook(sound, kind=kind)]) == []
    assert codes([*healthy(), OTHER, webhook(sound, "Ignore", kind=kind)]) == []
    assert codes([*healthy(), webhook(sound, kind=kind)]) == [], "services were not read"


@pytest.mark.parametrize(
    ("ca", "said"),
    [
        (None, "it has no caBundle"),
        ("@@@", "its caBundle cannot be read"),
        (base64.b64encode(b"no certificate").decode(), "its caBundle cannot be read"),
        (bundle(-timedelta(days=1)), "its caBundle expired on 2025-12-31T12:00:00Z"),
    ],
    ids=["missing", "no base64", "no certificate", "expired"],  # a certificate is another each time
)
def test_a_webhook_that_cannot_be_trusted(ca: str | None, said: str) -> None:
    (one,) = look([*healthy(), SERVICE, webhook(ca)])
    assert (one.kind.code, one.examples[0].detail) == ("WebhookUntrusted", said)
    assert codes([*healthy(), SERVICE, webhook(ca, created=NEW)]) == []


def lease(namespace: str, renewed: str, holder: str = "a") -> Lease:
    spec = LeaseSpec(holder_identity=holder, renew_time=renewed)
    return Lease(metadata=ObjectMeta(name="cluster-autoscaler", namespace=namespace), spec=spec)


def test_two_autoscalers_at_work() -> None:
    both = [lease("kube-system", NEW), lease("autoscaling", NEW, "b")]
    assert codes([*healthy(), *both]) == ["TwoAutoscalers"]
    assert codes([*healthy(), *both], grace=timedelta()) == ["TwoAutoscalers"]
    assert codes([*healthy(), lease("kube-system", NEW), lease("autoscaling", OLD)]) == []
    left = [lease("kube-system", NEW), lease("autoscaling", "2026-01-01T11:57:00Z", "b")]
    assert codes([*healthy(), *left]) == []
    assert codes([*healthy(), lease("kube-system", NEW), lease("autoscaling", NEW, "")]) == []


def test_node_groups_of_the_cluster_are_held_up_to_their_nodes() -> None:
    spec: dict[str, object] = {
        "nodeSelector": {"node.kubernetes.io/instance-type": "m"},
        "template": {"capacity": {"cpu": 4, "memory": "8Gi"}},
        "csiDrivers": {DISK: 2},
    }
    group = NodeGroup(metadata=ObjectMeta(name="workers"), spec=spec)
    assert codes([*healthy(), group]) == []
    group.spec = {**spec, "csiDrivers": {DISK: 25}}
    assert codes([*healthy(), group]) == ["TemplateMismatch"]


def test_a_node_group_that_makes_no_sense() -> None:
    group = NodeGroup(metadata=ObjectMeta(name="odd"), spec={"min": 5, "max": 3})
    (one,) = look([*healthy(), group])
    assert (one.kind.code, one.about, one.count) == ("GroupUnreadable", "odd", 1)
    assert "5 is more than max 3" in one.examples[0].detail
