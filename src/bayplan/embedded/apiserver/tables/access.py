"""The columns of RBAC, webhooks, endpoints, quotas and what else is shown in few words."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.tables.columns import AGE, NAME, Column, column
from bayplan.embedded.apiserver.tables.values import NONE, joined, labels, template_images


def _created(obj: JsonObject) -> str:
    return str(obj["metadata"].get("creationTimestamp", ""))


CREATED_AT = (NAME, column("Created At", _created, type_="date"))


def _role(binding: JsonObject) -> str:
    reference = binding.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _subjects(title: str, kind: str) -> Column:
    def read(binding: JsonObject) -> str:
        found = [one for one in binding.get("subjects") or () if one.get("kind") == kind]
        return ", ".join(_subject(one) for one in found)

    return column(title, read, wide=True)


def _subject(subject: JsonObject) -> str:
    namespace, name = subject.get("namespace"), subject.get("name", "")
    return f"{namespace}/{name}" if namespace else str(name)


BINDING = (
    NAME,
    column("Role", _role),
    AGE,
    _subjects("Users", "User"),
    _subjects("Groups", "Group"),
    _subjects("ServiceAccounts", "ServiceAccount"),
)
WEBHOOKS = (
    NAME,
    column("Webhooks", lambda obj: len(obj.get("webhooks") or ()), type_="integer"),
    AGE,
)


def _addresses(endpoints: JsonObject) -> str:
    return joined(
        f"{address.get('ip')}:{port.get('port')}"
        for subset in endpoints.get("subsets") or ()
        for address in subset.get("addresses") or ()
        for port in subset.get("ports") or ()
    )


ENDPOINTS = (NAME, column("Endpoints", _addresses), AGE)


def _slice_addresses(endpoints: JsonObject) -> str:
    return joined(
        address
        for one in endpoints.get("endpoints") or ()
        for address in one.get("addresses") or ()
    )


ENDPOINT_SLICE = (
    NAME,
    column("AddressType", lambda obj: obj.get("addressType", "")),
    column("Ports", lambda obj: joined(one.get("port") for one in obj.get("ports") or ())),
    column("Endpoints", _slice_addresses),
    AGE,
)


def _used(limits: bool) -> Callable[[JsonObject], str]:
    def read(quota: JsonObject) -> str:
        status = quota.get("status") or {}
        hard = status.get("hard") or (quota.get("spec") or {}).get("hard") or {}
        used = status.get("used") or {}
        shown = [name for name in sorted(hard) if name.startswith("limits.") == limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in shown)

    return read


QUOTA = (NAME, column("Request", _used(limits=False)), column("Limit", _used(limits=True)), AGE)


def _controller(revision: JsonObject) -> str:
    owners = revision["metadata"].get("ownerReferences") or ()
    controller = next((one for one in owners if one.get("controller")), None)
    if controller is None:
        return NONE
    return f"{controller.get('kind', '').lower()}/{controller.get('name', '')}"


REVISION = (
    NAME,
    column("Controller", _controller),
    column("Revision", lambda obj: str(obj.get("revision", 0))),
    AGE,
)
POD_TEMPLATE = (
    NAME,
    column("Containers", lambda obj: template_images({"spec": obj})[0]),
    column("Images", lambda obj: template_images({"spec": obj})[1]),
    column(
        "Pod Labels",
        lambda obj: labels(((obj.get("template") or {}).get("metadata") or {}).get("labels")),
    ),
)
