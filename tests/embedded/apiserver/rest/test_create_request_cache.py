"""Objects that come again in the same words are what they would be if they came alone."""

from __future__ import annotations

import json
from typing import Any

from bayplan.embedded.apiserver.rest.backend import MAX_CACHED
from tests.embedded.apiserver.http_client import Http

PODS = "/api/v1/namespaces/default/pods"


def pod(**spec: Any) -> bytes:
    asked = {"requests": {"cpu": "0.1"}}
    containers = [{"name": "c", "image": "i", "resources": asked}]
    written = {"metadata": {"generateName": "p-"}, "spec": {"containers": containers, **spec}}
    return json.dumps(written).encode()


def without_identity(made: dict[str, Any]) -> dict[str, Any]:
    own = ("name", "uid", "resourceVersion", "creationTimestamp")
    meta = {key: value for key, value in made["metadata"].items() if key not in own}
    return {**made, "metadata": meta}


async def test_pods_of_one_template_differ_in_nothing_but_their_identity(http: Http) -> None:
    made = [(await http.post(PODS, pod())).body for _ in range(3)]
    assert len({one["metadata"]["name"] for one in made}) == 3
    assert len({one["metadata"]["uid"] for one in made}) == 3
    assert without_identity(made[0]) == without_identity(made[1]) == without_identity(made[2])
    assert made[2]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m"}
    assert made[2]["status"]["qosClass"] == "Burstable"


async def test_an_unknown_field_is_complained_of_each_time(http: Http) -> None:
    for _ in range(3):
        answer = await http.post(PODS, pod(colour="red"))
        assert (answer.code, "colour" in answer.headers.get("Warning", "")) == (201, True)


async def test_a_strict_client_is_not_answered_as_a_lenient_one_was(http: Http) -> None:
    for how in ("Ignore", "Warn", "Ignore"):
        answer = await http.post(f"{PODS}?fieldValidation={how}", pod(colour="red"))
        assert answer.code == 201
    refused = await http.post(f"{PODS}?fieldValidation=Strict", pod(colour="red"))
    assert (refused.code, "unknown field" in refused.body["message"]) == (400, True)


async def test_what_is_wrong_is_wrong_each_time(http: Http) -> None:
    for _ in range(2):
        refused = await http.post(PODS, pod(restartPolicy="Perhaps"))
        assert (refused.code, "restartPolicy" in refused.body["message"]) == (422, True)


async def test_a_class_that_came_meanwhile_counts(http: Http) -> None:
    before = await http.post(PODS, pod())
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await http.post(classes, {"metadata": {"name": "c"}, "value": 7, "globalDefault": True})
    after = await http.post(PODS, pod())
    assert (before.body["spec"]["priority"], after.body["spec"]["priority"]) == (0, 7)


async def test_more_templates_than_are_kept_do_no_harm(http: Http) -> None:
    for number in range(MAX_CACHED + 3):
        made = await http.post(PODS, pod(hostname=f"h{number}"))
        assert made.body["spec"]["hostname"] == f"h{number}"
