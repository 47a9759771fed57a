"""Services, their endpoints, and the configurations of webhooks."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.services import SERVICES
from bayplan.embedded.apiserver.strategies.strategy import Strategy, fill, items
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, required


def _default_webhooks(obj: JsonObject) -> None:
    for hook in items(obj, "webhooks"):
        fill(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        fill(hook, namespaceSelector={}, objectSelector={})
        if obj.get("kind", "").startswith("Mutating"):
            fill(hook, reinvocationPolicy="Never")
        for rule in items(hook, "rules"):
            fill(rule, scope="*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service:
            fill(service, port=443)


def _webhook_problems(obj: JsonObject) -> list[Cause]:
    found: list[Cause] = []
    for index, hook in enumerate(items(obj, "webhooks")):
        place = f"webhooks[{index}]"
        if not hook.get("name"):
            found.append(required(f"{place}.name"))
        if not hook.get("sideEffects"):
            found.append(required(f"{place}.sideEffects"))
        if not hook.get("admissionReviewVersions"):
            found.append(required(f"{place}.admissionReviewVersions"))
        if hook.get("matchConditions"):
            why = "conditions in CEL are not evaluated by this server"
            found.append(forbidden_field(f"{place}.matchConditions", why))
        if not 1 <= hook["timeoutSeconds"] <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            found.append(bad_value(f"{place}.timeoutSeconds", hook["timeoutSeconds"], why))
    return found


_WEBHOOKS = Strategy(default=_default_webhooks, validate=_webhook_problems)
CLUSTER = {
    "services": SERVICES,
    "endpoints": Strategy(create_on_update=True),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
}
