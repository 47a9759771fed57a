"""What is registered with an API server: webhooks, and node groups that are declared."""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import KubeObject, Struct


class ServiceReference(Struct):
    """The service that a webhook is behind."""

    namespace: str = ""
    name: str = ""


class WebhookClientConfig(Struct):
    """How the API server finds a webhook, and whom it trusts there."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str | None = None


class Webhook(Struct):
    """One webhook of a configuration."""

    name: str = ""
    client_config: WebhookClientConfig = msgspec.field(default_factory=WebhookClientConfig)
    failure_policy: str = "Fail"


class WebhookConfiguration(KubeObject):
    """Whom the API server asks before it stores something."""

    webhooks: list[Webhook] = []


class MutatingWebhookConfiguration(WebhookConfiguration):
    """Those who may change it."""


class ValidatingWebhookConfiguration(WebhookConfiguration):
    """Those who may refuse it."""


class NodeGroup(KubeObject):
    """A node group as it is declared in the cluster; whoever plans with it reads the spec."""

    spec: dict[str, object] = {}
