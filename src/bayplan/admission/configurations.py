"""The webhook configurations in the cluster: which requests the API server sends.

They are narrow, so that users without queues never wait for the webhook. Selectors leave
out kube-system and the webhook's own namespace, or a cluster that starts anew would wait for a
webhook that waits for the cluster. Match conditions leave out all pods but those that ask for
something that is checked here.

The scheduler's status writes, which go on all the time, are sent only where a spec or a state
changes, and never depend on the webhook, whatever the failure policy.

A missing configuration is created. In an existing one only the CA bundle is changed, and the
failure policy if one is set; a CA bundle that cert-manager injects is kept. An API server without
match conditions gets a configuration without them, and sends every pod.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from bayplan.admission import rules
from bayplan.admission.review import PatchOperation
from bayplan.client import Client, Resource, Untyped, json_patch, untyped_kind
from bayplan.client.errors import AlreadyExistsError, InvalidError, NotFoundError
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES
from bayplan.kube.volcano import GATE_ANNOTATIONS, GROUP

FailurePolicy = Literal["Fail", "Ignore"]
MUTATING = untyped_kind("MutatingWebhookConfiguration")
VALIDATING = untyped_kind("ValidatingWebhookConfiguration")
_DOMAIN = "webhook.bayplan.io"
_TIMEOUT = 5
CONDITIONS = "matchConditions"


@dataclass(frozen=True, slots=True)
class Registration:
    """The address of the webhook, its failure policy, and which pods are sent to it."""

    name: str = "bayplan-webhook"
    """The name of both configurations, of the service and of the Secret."""
    namespace: str = "kube-system"
    url: str = ""
    """The URL of the webhook, if it is not called through its service."""
    policy: FailurePolicy | None = None
    """None for the policy of an existing configuration, or Fail."""
    schedulers: Sequence[str] = ("bayplan",)
    conditions: bool = True
    """Whether match conditions are set; an API server that does not know them sends all pods."""


def mutating(registration: Registration) -> Untyped:
    """Return the mutating configuration."""
    gate = _hook(registration, "gate.pods", rules.MUTATE_PODS, [_rule("", "pods", "CREATE")])
    gate["reinvocationPolicy"] = "IfNeeded"
    gate["matchConditions"] = [
        _condition("is-served", _is_served(registration)),
        _condition("asks-for-the-gate", _asks_for_gate()),
    ]
    return _configuration(registration, [gate])


def validating(registration: Registration) -> Untyped:
    """Return the validating configuration."""
    pods = _hook(registration, "pods", rules.VALIDATE_PODS, [_rule("", "pods", "CREATE")])
    judged = f"({_is_served(registration)}) || ({_asks_for_attach_limits()})"
    pods["matchConditions"] = [_condition("is-judged", judged)]
    queues = [_rule(GROUP, "queues", "CREATE", "UPDATE", "DELETE")]
    groups = [_rule(GROUP, "podgroups", "CREATE")]
    hooks = [
        pods,
        _hook(registration, "queues", rules.VALIDATE_QUEUES, queues),
        _hook(registration, "podgroups", rules.VALIDATE_GROUPS, groups),
        *_of_bookkeeping(registration),
    ]
    return _configuration(registration, hooks)


def _configuration(registration: Registration, hooks: list[Untyped]) -> Untyped:
    if not registration.conditions:
        hooks = [unconditional(hook) for hook in hooks]
    return {"metadata": {"name": registration.name}, "webhooks": hooks}


def unconditional(hook: Untyped) -> Untyped:
    """Return a webhook without its match conditions."""
    return {key: value for key, value in hook.items() if key != CONDITIONS}


def _of_bookkeeping(registration: Registration) -> Iterator[Untyped]:
    """Yield the webhooks for objects that the scheduler writes itself: they never block."""
    kept = replace(registration, policy="Ignore")
    states = _hook(
        kept,
        "states.queues",
        rules.VALIDATE_QUEUES,
        [_rule(GROUP, "queues/status", "UPDATE")],
    )
    changed = f"{_state('object')} != {_state('oldObject')}"
    yield {**states, "matchConditions": [_condition("changes-the-state", changed)]}
    updates = _hook(
        kept, "updates.podgroups", rules.VALIDATE_GROUPS, [_rule(GROUP, "podgroups", "UPDATE")]
    )
    changed = "object.spec != oldObject.spec"
    yield {**updates, "matchConditions": [_condition("changes-the-spec", changed)]}


def _state(of: str) -> str:
    return f"(has({of}.status) && has({of}.status.state) ? {of}.status.state : '')"


def _hook(registration: Registration, name: str, path: str, judged: list[Untyped]) -> Untyped:
    return {
        "name": f"{name}.{_DOMAIN}",
        "clientConfig": _client_config(registration, path),
        "rules": judged,
        "failurePolicy": registration.policy or "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [_elsewhere(registration)]},
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT,
        "admissionReviewVersions": ["v1"],
    }


def _client_config(registration: Registration, path: str) -> Untyped:
    if registration.url:
        return {"url": f"{registration.url}{path}"}
    service = {"namespace": registration.namespace, "name": registration.name, "path": path}
    return {"service": service}


def _rule(group: str, resource: str, *operations: str) -> Untyped:
    version = "v1beta1" if group else "v1"
    return {
        "operations": list(operations),
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [resource],
        "scope": "*",
    }


def _elsewhere(registration: Registration) -> Untyped:
    """Return the selector that excludes kube-system and the namespace of the webhook."""
    names = sorted({"kube-system", registration.namespace})
    return {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names}


def _condition(name: str, expression: str) -> Untyped:
    return {"name": name, "expression": expression}


def _is_served(registration: Registration) -> str:
    names = ", ".join(f"'{name}'" for name in registration.schedulers)
    return f"has(object.spec.schedulerName) && object.spec.schedulerName in [{names}]"


def _asks_for_gate() -> str:
    held = "object.metadata.annotations"
    asked = (f"('{key}' in {held} && {held}['{key}'] == 'true')" for key in GATE_ANNOTATIONS)
    return f"has({held}) && ({' || '.join(asked)})"


def _asks_for_attach_limits() -> str:
    starts = " || ".join(f"name.startsWith('{prefix}')" for prefix in ATTACH_LIMIT_PREFIXES)

    def named(amounts: str) -> str:
        return f"(has({amounts}) && {amounts}.exists(name, {starts}))"

    def within(resources: str) -> str:
        maps = f"{named(f'{resources}.requests')} || {named(f'{resources}.limits')}"
        return f"(has({resources}) && ({maps}))"

    def among(field: str) -> str:
        held = f"object.spec.{field}"
        return f"(has({held}) && {held}.exists(one, {within('one.resources')}))"

    return " || ".join(
        (among("containers"), among("initContainers"), within("object.spec.resources"))
    )


log = logging.getLogger(__name__)
_INJECTED = "cert-manager.io/inject-"


@dataclass(frozen=True, slots=True)
class Installer:
    """Creates both webhook configurations and keeps them up to date."""

    registration: Registration

    async def install(self, client: Client, trusted: bytes) -> bool:
        """Create or correct both configurations; return whether anything was written."""
        changed = False
        for resource, wanted in (
            (MUTATING, mutating(self.registration)),
            (VALIDATING, validating(self.registration)),
        ):
            changed |= await self._install(client, resource, wanted, trusted)
        return changed

    async def _install(
        self, client: Client, resource: Resource[Untyped], wanted: Untyped, trusted: bytes
    ) -> bool:
        name = self.registration.name
        try:
            found = await client.get(resource, name)
        except NotFoundError:
            return await _create(client, resource, trusting(wanted, trusted))
        changes = corrections(found, wanted, trusted, with_policy=bool(self.registration.policy))
        if changes:
            await client.patch(resource, name, change=json_patch(changes))
            log.info("updated %s %s", resource.kind, name)
        return bool(changes)


async def _create(client: Client, resource: Resource[Untyped], wanted: Untyped) -> bool:
    try:
        await client.create(wanted, resource)
    except AlreadyExistsError:  # by another replica, with the same in it
        return False
    except InvalidError as error:
        if CONDITIONS not in str(error) or not any(CONDITIONS in one for one in _hooks(wanted)):
            raise
        log.warning("creating %s without match conditions: %s", resource.kind, error)
        return await _create(client, resource, _unconditional(wanted))
    log.info("created %s %s", resource.kind, _dict(wanted["metadata"])["name"])
    return True


def _unconditional(wanted: Untyped) -> Untyped:
    return {**wanted, "webhooks": [unconditional(hook) for hook in _hooks(wanted)]}


def trusting(wanted: Untyped, trusted: bytes) -> Untyped:
    """Return the configuration with the CA bundle in every webhook."""
    if not trusted:
        return wanted
    bundle = base64.b64encode(trusted).decode()
    hooks = [
        {**hook, "clientConfig": {**_dict(hook["clientConfig"]), "caBundle": bundle}}
        for hook in _hooks(wanted)
    ]
    return {**wanted, "webhooks": hooks}


def corrections(
    found: Untyped, wanted: Untyped, trusted: bytes, *, with_policy: bool
) -> list[PatchOperation]:
    """Return the JSON patch for an existing configuration: CA bundle and failure policy."""
    ours = {hook["name"]: hook for hook in _hooks(wanted)}
    bundle = "" if _is_injected(found) else base64.b64encode(trusted).decode()
    changes: list[PatchOperation] = []
    for index, hook in enumerate(_hooks(found)):
        if (own := ours.get(hook.get("name"))) is None:
            continue
        place = f"/webhooks/{index}"
        edits = [*_trust(place, hook, bundle), *(_policy(place, hook, own) if with_policy else ())]
        if edits:
            changes += [{"op": "test", "path": f"{place}/name", "value": hook["name"]}, *edits]
    return changes


def _trust(place: str, hook: Untyped, bundle: str) -> Iterator[PatchOperation]:
    if bundle and _dict(hook.get("clientConfig")).get("caBundle") != bundle:
        yield {"op": "add", "path": f"{place}/clientConfig/caBundle", "value": bundle}


def _policy(place: str, hook: Untyped, own: Untyped) -> Iterator[PatchOperation]:
    if hook.get("failurePolicy") != own["failurePolicy"]:
        yield {"op": "add", "path": f"{place}/failurePolicy", "value": own["failurePolicy"]}


def _is_injected(found: Untyped) -> bool:
    annotations = _dict(_dict(found.get("metadata")).get("annotations"))
    return any(name.startswith(_INJECTED) for name in annotations)


def _hooks(configuration: Untyped) -> list[Untyped]:
    found = configuration.get("webhooks")
    return [_dict(hook) for hook in found] if isinstance(found, list) else []


def _dict(found: object) -> Untyped:
    return cast("Untyped", found) if isinstance(found, dict) else {}
