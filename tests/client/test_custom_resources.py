"""Kinds that nobody knew at build time: defined, served, watched, and gone again."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from bayplan.client import Client, Resource, Selection, Untyped, WatchFrom, merge, untyped
from bayplan.client.errors import InvalidError, NotFoundError
from tests.client.conftest import meta

DEFINITIONS = untyped(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def definition(group: str) -> Untyped:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [version],
        },
    }


def established(item: Untyped) -> bool:
    status = item.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(it["type"] == "Established" and it["status"] == "True" for it in conditions or ())


@pytest.fixture
async def widgets(client: Client) -> AsyncIterator[Resource[Untyped]]:
    """A kind of the test's own, ready to be used."""
    group = f"bayplan-{secrets.token_hex(4)}.example.com"
    made = await client.create(definition(group))
    name = str(meta(made)["name"])
    which = Selection(fields=f"metadata.name={name}")
    async with client.watch(DEFINITIONS, which, WatchFrom(initial_events=False)) as events:
        async for event in events:
            if event.object is not None and established(event.object):
                break
    yield untyped(group, "v1", "widgets", "Widget")
    await client.delete(DEFINITIONS, name)


async def make(client: Client, resource: Resource[Untyped], namespace: str, size: int) -> Untyped:
    """Make one; a definition that has just been accepted may take a moment to be served."""
    item: Untyped = {"metadata": {"namespace": namespace, "name": "w"}, "spec": {"size": size}}
    for _ in range(500):
        try:
            return await client.create(item, resource)
        except NotFoundError:
            await client.version()
    raise AssertionError("the new kind was never served")


async def test_a_custom_resource_has_every_verb(
    client: Client, namespace: str, widgets: Resource[Untyped]
) -> None:
    made = await make(client, widgets, namespace, 3)
    assert made["kind"] == "Widget"
    grown = await client.patch(
        widgets, namespace, "w", change=merge({"spec": {"size": 4}, "status": {"ready": True}})
    )
    assert (grown["spec"], grown.get("status")) == ({"size": 4}, None)
    change = merge({"status": {"ready": True}})
    ready = await client.patch(widgets, namespace, "w", change=change, subresource="status")
    assert ready["status"] == {"ready": True}
    assert (await client.list(widgets, namespace)).items == [ready]
    await client.delete(widgets, namespace, "w")
    assert (await client.list(widgets, namespace)).items == []


async def test_a_custom_resource_is_held_to_its_schema(
    client: Client, namespace: str, widgets: Resource[Untyped]
) -> None:
    with pytest.raises(InvalidError) as caught:
        await make(client, widgets, namespace, 0)
    assert any("spec.size" in cause.field for cause in caught.value.causes)
