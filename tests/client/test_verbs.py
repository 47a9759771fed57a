"""Every verb, typed and untyped, as any API server does it."""

from __future__ import annotations

import pytest

from bayplan.client import (
    Client,
    Selection,
    Untyped,
    apply,
    deletion,
    json_patch,
    merge,
    strategic,
    untyped,
)
from bayplan.client.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
)
from bayplan.client.resources import resource_of
from bayplan.client.verbs.reads import UnknownKindError
from bayplan.kube.coordination import Lease, LeaseSpec
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.registrations import NodeGroup
from bayplan.kube.workloads import PriorityClass, ReplicaSet
from tests.client.conftest import meta

CONFIG_MAPS = untyped("", "v1", "configmaps", "ConfigMap")


def config_map(namespace: str, name: str, **data: str) -> Untyped:
    named = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}


def pod(namespace: str, name: str, **spec: object) -> Untyped:
    container = {"name": "main", "image": "example.com/none"}
    waiting = {"schedulerName": "nobody", "containers": [container], **spec}
    named = {"namespace": namespace, "name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": waiting}


async def test_an_untyped_object_is_created_read_and_deleted(
    client: Client, namespace: str
) -> None:
    made = await client.create(config_map(namespace, "a", colour="red"))
    read = await client.get(CONFIG_MAPS, namespace, "a")
    assert read == made
    assert read["data"] == {"colour": "red"}
    await client.delete(CONFIG_MAPS, namespace, "a")
    with pytest.raises(NotFoundError, match='"a" not found'):
        await client.get(CONFIG_MAPS, namespace, "a")


async def test_a_typed_object_is_created_and_read(client: Client, namespace: str) -> None:
    named = ObjectMeta(namespace=namespace, name="role")
    made = await client.create(Lease(metadata=named, spec=LeaseSpec(holder_identity="me")))
    assert made.metadata.uid
    assert made.spec.holder_identity == "me"
    assert await client.get(Lease, namespace, "role") == made


async def test_a_cluster_scoped_kind_is_named_by_its_name_alone(client: Client) -> None:
    made = await client.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"generateName": "bayplan-"},
            "value": 7,
        }
    )
    name = str(meta(made)["name"])
    assert (await client.get(PriorityClass, name)).value == 7
    with pytest.raises(ValueError, match="a PriorityClass is named by name"):
        await client.get(PriorityClass, "default", name)
    await client.delete(PriorityClass, name)


async def test_a_namespaced_kind_is_never_named_by_half(client: Client) -> None:
    with pytest.raises(ValueError, match="a Pod is named by namespace and name"):
        await client.get(Pod, "web-0")
    with pytest.raises(ValueError, match="cannot be the name"):
        await client.get(Pod, "default", "..")


async def test_a_list_is_fetched_in_pages_and_is_whole(client: Client, namespace: str) -> None:
    names = {f"m{number}" for number in range(7)}
    for name in names:
        await client.create(config_map(namespace, name))
    which = Selection(namespace, fields="metadata.namespace=" + namespace)
    sizes = [len(page.items) async for page in client.pages(CONFIG_MAPS, which, limit=3)]
    assert all(size <= 3 for size in sizes)
    assert len(sizes) > 2
    page = await client.list(CONFIG_MAPS, namespace, limit=3)
    assert {str(meta(item)["name"]) for item in page.items} >= names
    assert page.resource_version
    assert all(item["kind"] == "ConfigMap" for item in page.items)


async def test_labels_and_fields_select(client: Client, namespace: str) -> None:
    for name, tier in (("a", "front"), ("b", "back")):
        item = config_map(namespace, name)
        await client.create({**item, "metadata": {**meta(item), "labels": {"tier": tier}}})
    by_label = await client.list(CONFIG_MAPS, namespace, labels="tier in (back)")
    by_field = await client.list(CONFIG_MAPS, namespace, fields="metadata.name=a")
    assert [meta(item)["name"] for item in by_label.items] == ["b"]
    assert [meta(item)["name"] for item in by_field.items] == ["a"]


async def test_an_update_of_what_has_changed_meanwhile_conflicts(
    client: Client, namespace: str
) -> None:
    first = await client.create(config_map(namespace, "a", n="1"))
    second = await client.update({**first, "data": {"n": "2"}})
    assert meta(second)["resourceVersion"] != meta(first)["resourceVersion"]
    with pytest.raises(ConflictError) as caught:
        await client.update({**first, "data": {"n": "3"}})
    assert not isinstance(caught.value, AlreadyExistsError)
    assert (await client.get(CONFIG_MAPS, namespace, "a"))["data"] == {"n": "2"}


async def test_updating_from_a_type_that_lacks_fields_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="lacks fields that an update would erase"):
        await client.update(Pod(metadata=ObjectMeta(namespace="n", name="p", resource_version="1")))
    with pytest.raises(ValueError, match="needs its resourceVersion"):
        await client.update(config_map("n", "a"))


async def test_creating_twice_says_that_it_exists(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a"))
    with pytest.raises(AlreadyExistsError, match="already exists"):
        await client.create(config_map(namespace, "a"))


async def test_an_invalid_object_is_refused_with_its_causes(client: Client, namespace: str) -> None:
    with pytest.raises(InvalidError) as caught:
        await client.create(config_map(namespace, "Not_A_Name"))
    assert caught.value.code == 422
    assert any("metadata.name" in cause.field for cause in caught.value.causes)


async def test_a_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a"), dry_run=True)
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAPS, namespace, "a")
    await client.create(config_map(namespace, "b"))
    await client.delete(CONFIG_MAPS, namespace, "b", options=deletion(dry_run=True))
    await client.get(CONFIG_MAPS, namespace, "b")


async def test_a_merge_patch_sets_and_removes(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a", keep="1", drop="2"))
    change = merge({"data": {"drop": None, "new": "3"}})
    patched = await client.patch(CONFIG_MAPS, namespace, "a", change=change)
    assert patched["data"] == {"keep": "1", "new": "3"}


async def test_a_json_patch_tests_before_it_acts(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a", n="1"))
    good = json_patch(
        [
            {"op": "test", "path": "/data/n", "value": "1"},
            {"op": "replace", "path": "/data/n", "value": "2"},
        ]
    )
    patched = await client.patch(CONFIG_MAPS, namespace, "a", change=good)
    assert patched["data"] == {"n": "2"}
    with pytest.raises((InvalidError, BadRequestError)):
        await client.patch(CONFIG_MAPS, namespace, "a", change=good)


async def test_a_strategic_patch_merges_lists_by_key(client: Client, namespace: str) -> None:
    await client.create(pod(namespace, "p", tolerations=[{"key": "a", "operator": "Exists"}]))
    change = strategic({"spec": {"containers": [{"name": "main", "image": "example.com/new"}]}})
    patched = await client.patch(Pod, namespace, "p", change=change)
    assert [(one.name, one.image) for one in patched.spec.containers] == [
        ("main", "example.com/new")
    ]


async def test_a_patch_that_names_an_old_version_conflicts(client: Client, namespace: str) -> None:
    made = await client.create(config_map(namespace, "a"))
    old = {"resourceVersion": meta(made)["resourceVersion"]}
    await client.patch(CONFIG_MAPS, namespace, "a", change=merge({"data": {"n": "1"}}))
    with pytest.raises(ConflictError):
        await client.patch(
            CONFIG_MAPS, namespace, "a", change=merge({"metadata": old, "data": {"n": "2"}})
        )


async def test_two_managers_that_apply_the_same_field_conflict(
    client: Client, namespace: str
) -> None:
    wanted = config_map(namespace, "a", n="1")
    await client.patch(CONFIG_MAPS, namespace, "a", change=apply(wanted, "first"))
    other = config_map(namespace, "a", n="2")
    with pytest.raises(ConflictError):
        await client.patch(CONFIG_MAPS, namespace, "a", change=apply(other, "second"))
    forced = apply(other, "second", force=True)
    patched = await client.patch(CONFIG_MAPS, namespace, "a", change=forced)
    assert patched["data"] == {"n": "2"}


async def test_status_is_patched_apart_from_the_rest(client: Client, namespace: str) -> None:
    await client.create(pod(namespace, "p"))
    change = merge({"status": {"phase": "Running"}, "spec": {"nodeName": "sneaked-in"}})
    patched = await client.patch(Pod, namespace, "p", change=change, subresource="status")
    assert patched.status.phase == "Running"
    assert patched.spec.node_name in {None, ""}


async def test_a_pod_is_bound_once(client: Client, namespace: str) -> None:
    node = await client.create(Node(metadata=ObjectMeta(name=namespace)))
    made = await client.create(pod(namespace, "p"))
    await client.bind(namespace, "p", node.name, uid=str(meta(made)["uid"]))
    assert (await client.get(Pod, namespace, "p")).spec.node_name == node.name
    with pytest.raises(ConflictError):
        await client.bind(namespace, "p", node.name)
    await client.delete(Node, node.name)


async def test_a_pod_that_was_replaced_is_not_bound_by_its_old_uid(
    client: Client, namespace: str
) -> None:
    await client.create(pod(namespace, "p"))
    with pytest.raises(ConflictError):
        await client.bind(namespace, "p", "n", uid="00000000-0000-0000-0000-000000000000")


async def test_a_disruption_budget_refuses_an_eviction(client: Client, namespace: str) -> None:
    await client.create(pod(namespace, "p"))
    await client.patch(
        Pod, namespace, "p", change=merge({"status": {"phase": "Running"}}), subresource="status"
    )
    await client.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"namespace": namespace, "name": "none"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "p"}}},
        }
    )
    with pytest.raises(TooManyRequestsError):
        await client.evict(namespace, "p", grace=0)
    assert (await client.get(Pod, namespace, "p")).metadata.deletion_timestamp is None


async def test_an_eviction_deletes_a_pod_that_nothing_protects(
    client: Client, namespace: str
) -> None:
    await client.create(pod(namespace, "p"))
    await client.evict(namespace, "p", grace=0)
    with pytest.raises(NotFoundError):
        await client.get(Pod, namespace, "p")


async def test_a_replica_set_is_scaled(client: Client, namespace: str) -> None:
    template = {"metadata": {"labels": {"app": "r"}}, "spec": pod("", "")["spec"]}
    await client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"namespace": namespace, "name": "r"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "r"}},
                "template": template,
            },
        }
    )
    scaled = await client.scale(ReplicaSet, namespace, "r", replicas=3)
    assert scaled.spec.replicas == 3
    assert (await client.scale_of(ReplicaSet, namespace, "r")).spec.replicas == 3
    await client.scale(ReplicaSet, namespace, "r", replicas=0)


async def test_a_deletion_that_names_another_uid_is_refused(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a"))
    with pytest.raises(ConflictError):
        await client.delete(CONFIG_MAPS, namespace, "a", options=deletion(uid="another"))
    await client.get(CONFIG_MAPS, namespace, "a")


async def test_whatever_is_selected_is_deleted_at_once(client: Client, namespace: str) -> None:
    for name in ("a", "b", "c"):
        item = config_map(namespace, name)
        labels = {"doomed": "no" if name == "c" else "yes"}
        await client.create({**item, "metadata": {**meta(item), "labels": labels}})
    await client.delete_all(CONFIG_MAPS, Selection(namespace, labels="doomed=yes"))
    left = await client.list(CONFIG_MAPS, namespace, labels="doomed")
    assert [meta(item)["name"] for item in left.items] == ["c"]


async def test_kinds_without_a_type_are_discovered(client: Client) -> None:
    found = await client.discover("apps/v1", "Deployment")
    assert (found.plural, found.namespaced) == ("deployments", True)
    with pytest.raises(UnknownKindError, match="no kind 'Starship'"):
        await client.discover("apps/v1", "Starship")
    with pytest.raises(UnknownKindError):
        await client.discover("no-such-group.example.com/v1", "Starship")


async def test_having_a_type_for_a_kind_does_not_say_that_it_is_served(client: Client) -> None:
    assert await client.serves(resource_of(Node))
    assert not await client.serves(resource_of(NodeGroup))


async def test_the_server_says_its_version_and_health(client: Client) -> None:
    assert (await client.version()).major == "1"
    assert await client.raw("/readyz") == b"ok"
