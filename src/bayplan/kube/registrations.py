"""Webhook configurations, and node groups declared as objects."""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import KubeObject, Struct


class ServiceReference(Struct):
    """The service of a webhook."""

    namespace: str = ""
    name: str = ""


class WebhookClientConfig(Struct):
    """How the API server connects to a webhook, and the CA it trusts."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str | None = None


class Webhook(Struct):
    """One webhook of a configuration."""

    name: str = ""
    client_config: WebhookClientConfig = msgspec.field(default_factory=WebhookClientConfig)
    failure_policy: str = "Fail"


class WebhookConfiguration(KubeObject):
    """Webhooks that the API server calls before it stores objects."""

    webhooks: list[Webhook] = []


class MutatingWebhookConfiguration(WebhookConfiguration):
    """Webhooks that may change objects."""


class ValidatingWebhookConfiguration(WebhookConfiguration):
    """Webhooks that may refuse objects."""


class NodeGroup(KubeObject):
    """A node group declared as an object; the autoscaler parses its spec."""

    spec: dict[str, object] = {}
