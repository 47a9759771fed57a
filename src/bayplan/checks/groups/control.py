"""Who stands around the API server: webhooks that cannot answer, and autoscalers that are two."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime, timedelta

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural
from bayplan.kube.coordination import Lease
from bayplan.kube.registrations import (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
    Webhook,
)
from bayplan.kube.times import read_time, timestamp
from bayplan.kube.workloads import Service

MOST_BUNDLE = 1 << 20
CLOCKS = timedelta(minutes=1)
"""How far apart the clocks of a cluster may be."""
AUTOSCALER = "cluster-autoscaler"
"""What leases of autoscalers begin with, ours too: it takes Cluster Autoscaler's own."""
NO_SERVICE = CheckKind(
    "WebhookWithoutService",
    Severity.ERROR,
    "a webhook that must answer is behind a Service that does not exist",
    "The API server refuses every request that it would ask the webhook about.",
    "Install the webhook's Service and pods, or delete its configuration:"
    " kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations",
    (Service,),
)
NO_TRUST = CheckKind(
    "WebhookUntrusted",
    Severity.ERROR,
    "a webhook's caBundle is missing, cannot be read, or has expired",
    "The API server cannot trust the webhook: with failurePolicy Fail it refuses what it would ask"
    " about, with Ignore the webhook does nothing.",
    "Let whoever writes the configuration renew it; bayplan webhook does so by itself while it"
    " runs.",
)
TWO = CheckKind(
    "TwoAutoscalers",
    Severity.ERROR,
    "two autoscalers are at work at once",
    "Each buys nodes for the same pods, and gives back what the other bought.",
    "Stop one of them, or let them share one lease (--leader-elect-resource-name and -namespace).",
    (Lease,),
)
KINDS = (NO_SERVICE, NO_TRUST, TWO)


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """Webhooks, then leases."""
    hooks = list(_webhooks(subject))
    yield from _without_service(hooks, subject)
    untrusted = [
        Example(name, problem) for name, hook in hooks if (problem := _distrust(hook, subject.now))
    ]
    if untrusted:
        text = f"{plural(len(untrusted), 'webhook')} that the API server cannot trust"
        yield found(NO_TRUST, "Webhook", untrusted, text)
    yield from _autoscalers(subject)


def _webhooks(subject: CheckedCluster) -> Iterator[tuple[str, Webhook]]:
    """Each with the name by which it is found again; who is new may still be filled in."""
    for kind in (MutatingWebhookConfiguration, ValidatingWebhookConfiguration):
        for one in subject.all(kind):
            if subject.is_young(one.metadata.creation_timestamp):
                continue
            yield from ((f"{kind.__name__} {one.name}: {hook.name}", hook) for hook in one.webhooks)


def _without_service(
    hooks: list[tuple[str, Webhook]], subject: CheckedCluster
) -> Iterator[Finding]:
    known = {one.key for one in subject.all(Service)}
    missing = [
        Example(name, f"service {service.namespace}/{service.name}")
        for name, hook in hooks
        if (service := hook.client_config.service) is not None
        and hook.failure_policy != "Ignore"
        and f"{service.namespace}/{service.name}" not in known
    ]
    if missing:
        text = f"{plural(len(missing), 'webhook')} whose Service does not exist"
        yield found(NO_SERVICE, "Webhook", missing, text)


def _distrust(hook: Webhook, now: datetime) -> str:
    """Why the API server cannot trust a webhook; empty if it can, as far as is known."""
    bundle = hook.client_config.ca_bundle
    if not bundle:
        return "it has no caBundle" if hook.client_config.service is not None else ""
    if len(bundle) > MOST_BUNDLE:
        return ""
    from cryptography import x509  # noqa: PLC0415 - slow to import, seldom needed

    try:
        pem = base64.b64decode(bundle, validate=True)
        ends = [one.not_valid_after_utc for one in x509.load_pem_x509_certificates(pem)]
    except (ValueError, binascii.Error):
        return "its caBundle cannot be read"
    return f"its caBundle expired on {timestamp(max(ends))}" if ends and max(ends) < now else ""


def _is_held(lease: Lease, now: datetime) -> bool:
    """Whether somebody renews a lease, as far as clocks agree."""
    renewed = read_time(lease.spec.renew_time)
    if renewed is None:
        return False
    return now - renewed <= CLOCKS + 2 * timedelta(seconds=lease.spec.lease_duration_seconds or 15)


def _autoscalers(subject: CheckedCluster) -> Iterator[Finding]:
    alive = [
        Example(one.key, f"held by {one.spec.holder_identity}")
        for one in subject.all(Lease)
        if one.name.startswith(AUTOSCALER)
        and one.spec.holder_identity
        and _is_held(one, subject.now)
    ]
    if len(alive) > 1:
        text = f"{plural(len(alive), 'autoscaler')} at work at once"
        yield found(TWO, "Lease", alive, text)
