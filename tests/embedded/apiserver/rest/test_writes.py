"""Objects over HTTP: created and changed."""

from __future__ import annotations

from random import Random

from bayplan.embedded.apiserver.rest.metadata import free_name
from tests.embedded.apiserver.configmaps import CMS, config_map
from tests.embedded.apiserver.http_client import JSON_PATCH, MERGE, Http


async def test_a_job_whose_pods_could_never_end_is_refused(http: Http) -> None:
    containers = [{"name": "c", "image": "i"}]
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    job = {"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": containers}}}}
    refused = await http.post(jobs, job)
    assert refused.code == 422
    assert 'valid values: "OnFailure", "Never"' in refused.body["message"]


async def test_an_indexed_job_must_say_how_many_indexes_it_has(http: Http) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    spec = {"completionMode": "Indexed", "parallelism": 2, "template": {"spec": pod}}
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    refused = await http.post(jobs, {"metadata": {"name": "a"}, "spec": spec})
    assert refused.code == 422
    assert "spec.completions: Required value" in refused.body["message"]


async def test_a_created_object_can_be_read_back(http: Http) -> None:
    created = await http.post(CMS, config_map("a", x="1"))
    read = await http.get(f"{CMS}/a")
    assert (created.code, read.code) == (201, 200)
    assert created.body == read.body
    assert read.body["data"] == {"x": "1"}
    assert {"uid", "resourceVersion", "creationTimestamp"} <= read.body["metadata"].keys()


async def test_a_name_can_be_taken_only_once(http: Http) -> None:
    await http.post(CMS, config_map("a"))
    again = await http.post(CMS, config_map("a"))
    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
    assert again.body["message"] == 'configmaps "a" already exists'


async def test_generate_name_makes_a_name(http: Http) -> None:
    made = await http.post(CMS, {"metadata": {"generateName": "a-"}})
    assert made.body["metadata"]["name"].startswith("a-")
    assert len(made.body["metadata"]["name"]) == 7


def test_generate_name_tries_other_names_than_those_that_are_taken() -> None:
    first = free_name("a-", Random(1), lambda _: False)
    second = free_name("a-", Random(1), {first}.__contains__)
    assert first != second
    assert free_name("a-", Random(1), lambda _: True).startswith("a-")


async def test_an_update_of_an_older_version_is_a_conflict(http: Http) -> None:
    old = (await http.post(CMS, config_map("a"))).body
    assert (await http.put(f"{CMS}/a", {**old, "data": {"x": "1"}})).code == 200
    late = await http.put(f"{CMS}/a", {**old, "data": {"x": "2"}})
    assert (late.code, late.body["reason"]) == (409, "Conflict")


async def test_an_update_without_a_version_always_wins(http: Http) -> None:
    await http.post(CMS, config_map("a"))
    assert (await http.put(f"{CMS}/a", config_map("a", x="2"))).body["data"] == {"x": "2"}


async def test_a_change_of_nothing_keeps_the_resource_version(http: Http) -> None:
    made = (await http.post(CMS, config_map("a", x="1"))).body
    same = (await http.patch(f"{CMS}/a", {"data": {"x": "1"}})).body
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_merge_and_json_patches_change_objects(http: Http) -> None:
    await http.post(CMS, config_map("a", x="1", y="2"))
    merged = await http.patch(f"{CMS}/a", {"data": {"x": None, "z": "3"}}, MERGE)
    assert merged.body["data"] == {"y": "2", "z": "3"}
    operations = [
        {"op": "test", "path": "/data/y", "value": "2"},
        {"op": "remove", "path": "/data/y"},
    ]
    patched = await http.patch(f"{CMS}/a", operations, JSON_PATCH)
    assert patched.body["data"] == {"z": "3"}


async def test_dry_runs_store_nothing(http: Http) -> None:
    tried = await http.post(f"{CMS}?dryRun=All", config_map("a"))
    assert tried.code == 201
    assert (await http.get(f"{CMS}/a")).code == 404


async def test_objects_need_a_namespace_that_exists(http: Http) -> None:
    refused = await http.post("/api/v1/namespaces/nowhere/configmaps", config_map("a"))
    assert (refused.code, refused.body["message"]) == (404, 'namespaces "nowhere" not found')
