"""Admission webhooks that cannot work, and two autoscalers that are active at once."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime, timedelta

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import CheckKind, Example, Finding, Severity, make_finding, plural
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
"""The largest accepted difference between the clocks of a cluster."""
AUTOSCALER = "cluster-autoscaler"
"""The prefix of autoscalers' leases; ours uses Cluster Autoscaler's."""
NO_SERVICE = CheckKind(
    "WebhookWithoutService",
    Severity.ERROR,
    "the Service of a webhook with failurePolicy Fail does not exist",
    "The API server refuses every request that matches the webhook's rules.",
    "Install the webhook's Service and pods, or delete its configuration:"
    " kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations",
    (Service,),
)
NO_TRUST = CheckKind(
    "WebhookUntrusted",
    Severity.ERROR,
    "a webhook's caBundle is missing, cannot be read, or has expired",
    "The API server cannot call the webhook: with failurePolicy Fail it refuses matching requests,"
    " with Ignore the webhook has no effect.",
    "Renew the caBundle in the configuration; bayplan webhook does so itself while it runs.",
)
TWO = CheckKind(
    "TwoAutoscalers",
    Severity.ERROR,
    "two autoscalers are active at once",
    "Both scale up for the same pods, and each removes nodes that the other added.",
    "Stop one of them, or give both the same lease (--leader-elect-resource-name and -namespace).",
    (Lease,),
)
KINDS = (NO_SERVICE, NO_TRUST, TWO)


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about webhooks, then about autoscalers' leases."""
    hooks = list(_webhooks(cluster))
    yield from _without_service(hooks, cluster)
    untrusted = [
        Example(name, problem) for name, hook in hooks if (problem := _distrust(hook, cluster.now))
    ]
    if untrusted:
        text = f"{plural(len(untrusted), 'webhook')} that the API server cannot trust"
        yield make_finding(NO_TRUST, "Webhook", untrusted, text)
    yield from _autoscalers(cluster)


def _webhooks(cluster: CheckedCluster) -> Iterator[tuple[str, Webhook]]:
    """Yield webhooks with their full names; new configurations may still be incomplete."""
    for kind in (MutatingWebhookConfiguration, ValidatingWebhookConfiguration):
        for one in cluster.all(kind):
            if cluster.is_young(one.metadata.creation_timestamp):
                continue
            yield from ((f"{kind.__name__} {one.name}: {hook.name}", hook) for hook in one.webhooks)


def _without_service(
    hooks: list[tuple[str, Webhook]], cluster: CheckedCluster
) -> Iterator[Finding]:
    known = {one.key for one in cluster.all(Service)}
    missing = [
        Example(name, f"service {service.namespace}/{service.name}")
        for name, hook in hooks
        if (service := hook.client_config.service) is not None
        and hook.failure_policy != "Ignore"
        and f"{service.namespace}/{service.name}" not in known
    ]
    if missing:
        text = f"{plural(len(missing), 'webhook')} whose Service does not exist"
        yield make_finding(NO_SERVICE, "Webhook", missing, text)


def _distrust(hook: Webhook, now: datetime) -> str:
    """Return why the API server cannot trust a webhook; empty if no reason is known."""
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
    """Return whether a lease is being renewed, with a tolerance for clock differences."""
    renewed = read_time(lease.spec.renew_time)
    if renewed is None:
        return False
    return now - renewed <= CLOCKS + 2 * timedelta(seconds=lease.spec.lease_duration_seconds or 15)


def _autoscalers(cluster: CheckedCluster) -> Iterator[Finding]:
    alive = [
        Example(one.key, f"held by {one.spec.holder_identity}")
        for one in cluster.all(Lease)
        if one.name.startswith(AUTOSCALER)
        and one.spec.holder_identity
        and _is_held(one, cluster.now)
    ]
    if len(alive) > 1:
        text = f"{plural(len(alive), 'autoscaler')} active at once"
        yield make_finding(TWO, "Lease", alive, text)
