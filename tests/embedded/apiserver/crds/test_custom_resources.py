"""Custom resources: validated, defaulted, pruned, printed, scaled; served as soon as defined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.http_client import MERGE, STRATEGIC, Http
from tests.embedded.apiserver.watches import gone

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRATES = "/apis/example.com/v1/namespaces/default/crates"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "port": {"x-kubernetes-int-or-string": True},
                "tags": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}},
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"filled": {"type": "integer"}}},
    },
}
HOOK = {"clientConfig": {"url": "https://127.0.0.1/"}, "conversionReviewVersions": ["v1"]}


def definition(**version: Any) -> dict[str, Any]:
    first = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.filled"},
        },
        "additionalPrinterColumns": [
            {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
            {"name": "First Part", "type": "string", "jsonPath": ".spec.parts[0].name"},
        ],
        "selectableFields": [{"jsonPath": ".spec.colour"}],
        **version,
    }
    return {
        "metadata": {"name": "crates.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Crate", "plural": "crates", "shortNames": ["cr8"]},
            "versions": [first],
        },
    }


def crate(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"size": 3, **spec}}


async def established(http: Http) -> dict[str, Any]:
    """The status of crates' definition, once its names have been looked at."""
    for _ in range(100):
        status: dict[str, Any] = (await http.get(f"{CRDS}/crates.example.com")).body["status"]
        if status["conditions"]:
            return status
    raise AssertionError("nobody has looked at the definition")


@pytest.fixture
async def crates(http: Http) -> Http:
    """A client to a server that knows crates."""
    assert (await http.post(CRDS, definition())).code == 201
    return http


async def test_a_definition_is_served_at_once(http: Http) -> None:
    assert (await http.get(CRATES)).code == 404
    made = (await http.post(CRDS, definition())).body
    assert made["status"]["storedVersions"] == ["v1"]
    assert (await http.get(CRATES)).body["kind"] == "CrateList"
    status = await established(http)
    assert {one["type"]: one["status"] for one in status["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert status["acceptedNames"]["listKind"] == "CrateList"
    resources = (await http.get("/apis/example.com/v1")).body["resources"]
    names = [one["name"] for one in resources]
    assert names == ["crates", "crates/status", "crates/scale"]
    document = (await http.get("/openapi/v3/apis/example.com/v1")).body
    assert "com.example.v1.Crate" in document["components"]["schemas"]


async def test_descriptions_are_handed_on_and_what_every_object_has_is_described(
    http: Http,
) -> None:
    fields: dict[str, Any] = SCHEMA["properties"]
    spec = {**fields["spec"], "description": "What it holds."}
    kind = {"type": "string", "description": "The word Crate."}
    described = {**fields, "spec": spec, "kind": kind}
    schema = {"openAPIV3Schema": {**SCHEMA, "description": "A crate.", "properties": described}}
    assert (await http.post(CRDS, definition(schema=schema))).code == 201
    v3 = (await http.get("/openapi/v3/apis/example.com/v1")).body["components"]["schemas"]
    v2 = (await http.get("/openapi/v2")).body["definitions"]
    for schemas in (v3, v2):
        shown = schemas["com.example.v1.Crate"]
        assert shown["description"] == "A crate."
        told = {name: one.get("description") for name, one in shown["properties"].items()}
        assert (told["spec"], told["kind"]) == ("What it holds.", "The word Crate.")
        assert all(told[name] for name in ("apiVersion", "metadata"))


async def test_defaults_are_set_and_unknown_fields_are_dropped(crates: Http) -> None:
    made = await crates.post(CRATES, crate(extra=1, free={"any": {"thing": 1}}))
    assert made.body["spec"] == {"size": 3, "colour": "red", "free": {"any": {"thing": 1}}}
    assert made.headers["Warning"] == '299 - "unknown field \\"spec.extra\\""'
    strict = await crates.post(f"{CRATES}?fieldValidation=Strict", crate("b", extra=1))
    assert strict.code == 400


async def test_a_schema_that_names_metadata_has_no_say_in_it(http: Http) -> None:
    named = {name: {"type": "string"} for name in ("apiVersion", "kind")}
    metadata = {"metadata": {"type": "object"}}
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], **named, **metadata}}
    made = definition(schema={"openAPIV3Schema": schema})
    assert (await http.post(CRDS, made)).code == 201
    sent = crate()
    sent["metadata"]["labels"] = {"a": "b"}
    answer = await http.post(CRATES, sent)
    assert (answer.code, answer.body["metadata"]["labels"]) == (201, {"a": "b"})


async def test_an_apply_does_not_claim_what_is_only_a_default(crates: Http) -> None:
    await crates.post(CRATES, crate(colour="blue"))
    wanted = {"apiVersion": "example.com/v1", "kind": "Crate", **crate()}
    applied = await crates.patch(
        f"{CRATES}/a?fieldManager=me", wanted, "application/apply-patch+yaml"
    )
    assert applied.code == 200, applied.body
    assert applied.body["spec"] == {"size": 3, "colour": "blue"}
    made = await crates.patch(
        f"{CRATES}/new?fieldManager=me",
        {**wanted, "metadata": {"name": "new"}},
        "application/apply-patch+yaml",
    )
    assert made.body["spec"] == {"size": 3, "colour": "red"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"size": 0}, "spec.size"),
        ({"size": "big"}, "spec.size"),
        ({"colour": "green"}, "spec.colour"),
        ({"port": True}, "spec.port"),
        ({"tags": ["a", "b", "c"]}, "spec.tags"),
        ({"tags": [1]}, "spec.tags[0]"),
        ({"parts": [{"name": "x"}, {"name": "x"}]}, "spec.parts[1]"),
    ],
)
async def test_what_the_schema_forbids_is_refused(
    crates: Http, spec: dict[str, Any], field: str
) -> None:
    refused = await crates.post(CRATES, crate(**spec))
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    named = {one["field"].removeprefix(".") for one in refused.body["details"]["causes"]}
    assert named == {field}


async def test_status_and_scale_are_subresources(crates: Http) -> None:
    await crates.post(CRATES, crate())
    await crates.patch(f"{CRATES}/a", {"status": {"filled": 5}})
    assert "status" not in (await crates.get(f"{CRATES}/a")).body
    await crates.patch(f"{CRATES}/a/status", {"status": {"filled": 2}, "spec": {"size": 9}})
    scale = (await crates.get(f"{CRATES}/a/scale")).body
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 2)
    await crates.patch(f"{CRATES}/a/scale", {"spec": {"replicas": 7}})
    found = (await crates.get(f"{CRATES}/a")).body
    assert (found["spec"]["size"], found["metadata"]["generation"]) == (7, 2)


async def test_columns_and_selectors_come_from_the_definition(crates: Http) -> None:
    await crates.post(CRATES, crate("a", parts=[{"name": "lid"}]))
    await crates.post(CRATES, crate("b", colour="blue"))
    table = (await crates.get(CRATES, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Colour", "First Part"]
    assert [row["cells"] for row in table["rows"]] == [["a", "red", "lid"], ["b", "blue", None]]
    blue = (await crates.get(f"{CRATES}?fieldSelector=spec.colour%3Dblue")).body["items"]
    assert [one["metadata"]["name"] for one in blue] == ["b"]


async def test_versions_of_one_kind_show_the_same_objects(http: Http) -> None:
    both = definition()
    old = {**both["spec"]["versions"][0], "name": "v1alpha1", "storage": False}
    both["spec"]["versions"].append(old)
    await http.post(CRDS, both)
    await http.post(CRATES.replace("v1", "v1alpha1", 1), crate())
    found = (await http.get(f"{CRATES}/a")).body
    older = (await http.get(f"{CRATES.replace('v1', 'v1alpha1', 1)}/a")).body
    assert (found["apiVersion"], older["apiVersion"]) == ("example.com/v1", "example.com/v1alpha1")
    assert found["spec"] == older["spec"]


async def test_custom_resources_take_merge_but_not_strategic_patches(crates: Http) -> None:
    await crates.post(CRATES, crate())
    assert (await crates.patch(f"{CRATES}/a", {"spec": {"size": 4}}, MERGE)).code == 200
    assert (await crates.patch(f"{CRATES}/a", {"spec": {"size": 5}}, STRATEGIC)).code == 415


async def test_a_definition_goes_with_its_objects(crates: Http) -> None:
    await crates.post(CRATES, crate())
    await crates.delete(f"{CRDS}/crates.example.com")
    await gone(crates, CRDS, "crates.example.com")
    assert (await crates.get(CRATES)).code == 404
    await crates.post(CRDS, definition())
    assert (await crates.get(CRATES)).body["items"] == []


async def test_definitions_survive_a_restart(tmp_path: Path) -> None:
    config = ServerConfig(data=tmp_path / "data.db")
    async with ApiServer(config) as server, Http(server) as http:
        await http.post(CRDS, definition())
        await http.post(CRATES, crate("b", colour="blue"))
    async with ApiServer(config) as server, Http(server) as http:
        found = (await http.get(f"{CRATES}?fieldSelector=spec.colour%3Dblue")).body["items"]
        assert [one["metadata"]["name"] for one in found] == ["b"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"group": "apps"}, "spec.group"),
        ({"scope": "Global"}, "spec.scope"),
        ({"versions": []}, "spec.versions"),
        ({"names": {"kind": "Crate", "plural": "boxes"}}, "metadata.name"),
        ({"conversion": {"strategy": "Webhook"}}, "spec.conversion.webhookClientConfig"),
        ({"conversion": {"strategy": "Webhook", "webhook": HOOK}}, "spec.conversion.strategy"),
    ],
)
async def test_a_definition_that_cannot_be_served_is_refused(
    http: Http, change: dict[str, Any], field: str
) -> None:
    body = definition()
    body["spec"].update(change)
    refused = await http.post(CRDS, body)
    assert refused.code == 422
    assert field in [one["field"] for one in refused.body["details"]["causes"]]


async def test_a_schema_with_a_bad_pattern_is_refused(http: Http) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "("}}}
    refused = await http.post(CRDS, definition(schema={"openAPIV3Schema": schema}))
    assert refused.code == 422


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"pattern": "a{1001}", "type": "string"}, "invalid repeat count: `{1001}`"),
        ({"anyOf": [{"pattern": "("}], "type": "string"}, "missing closing )"),
        ({"type": "array"}, "items: Required value: must be specified"),
        ({}, "type: Required value: must not be empty for specified object fields"),
        ({"type": "string", "allOf": [{"type": "string"}]}, "must be empty to be structural"),
        ({"type": "integer", "maximum": 3, "default": 4}, "should be less than or equal to 3"),
        ({"type": "object", "default": {"a": 1}}, "must not have unknown fields"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "becomes quadratic"),
        ({"type": "object", "x-kubernetes-map-type": "foo"}, '"atomic", "granular"'),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "additionalProperties": {"type": "string"},
            },
            "additionalProperties and properties are mutual exclusive",
        ),
    ],
)
async def test_a_schema_that_cannot_be_used_is_refused(
    http: Http, schema: dict[str, Any], words: str
) -> None:
    body = definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"x": schema}}})
    body["spec"]["versions"][0].pop("selectableFields")
    refused = await http.post(CRDS, body)
    assert refused.code == 422
    assert words in refused.body["message"]


async def test_a_definition_that_is_going_says_so(crates: Http) -> None:
    await established(crates)
    await crates.post(CRATES, {**crate(), "metadata": {"name": "a", "finalizers": ["x.io/y"]}})
    going = (await crates.delete(f"{CRDS}/crates.example.com")).body
    assert going["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert going["status"]["conditions"][-1]["type"] == "Terminating"
