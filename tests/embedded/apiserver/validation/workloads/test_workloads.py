"""What the server refuses of workloads, and in which words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.writes import change, create
from bayplan.embedded.apiserver.validation.workloads.jobchanges import (
    IndexesError,
    count_indexes,
    overlap,
)
from tests.embedded.apiserver.backends import call_of, new_backend

Fields = dict[str, Any]
SELECTOR = {"matchLabels": {"app": "a"}}
CONTAINER = {"name": "c", "image": "b"}
CONDITION = {"status": "True", "lastProbeTime": None, "lastTransitionTime": None}


def pod_template(**spec: Any) -> Fields:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER], **spec}}


def workload(kind: str, **spec: Any) -> Fields:
    """A sound workload of a kind, with other things said of its spec."""
    job = {"template": pod_template(restartPolicy="Never")}
    sound: dict[str, Fields] = {
        "jobs.batch": job,
        "cronjobs.batch": {"schedule": "* * * * *", "jobTemplate": {"spec": job}},
        "poddisruptionbudgets.policy": {"selector": SELECTOR},
    }
    base = sound.get(kind, {"selector": SELECTOR, "template": pod_template()})
    return {"metadata": {"name": "x"}, "spec": copy.deepcopy({**base, **spec})}


async def refusals(kind: str, obj: Fields) -> list[str]:
    """What is said of a new object; nothing if it is taken."""
    backend = await new_backend()
    try:
        await create(backend, call_of(backend, kind), obj)
    except StatusError as error:
        return cause_messages(error)
    return []


def cause_messages(error: StatusError) -> list[str]:
    return [f"{cause['field']}: {cause['message']}" for cause in (error.details or {})["causes"]]


KINDS = (
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "poddisruptionbudgets.policy",
)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_sound_workload_is_taken(kind: str) -> None:
    assert await refusals(kind, workload(kind)) == []


@pytest.mark.parametrize(
    ("kind", "spec", "words"),
    [
        (
            "deployments.apps",
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            (
                "spec.strategy.rollingUpdate: Forbidden: may not be specified when "
                "strategy `type` is "
                "'Recreate'"
            ),
        ),
        (
            "deployments.apps",
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            (
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may '
                "not be 0 when "
                "`maxSurge` is 0"
            ),
        ),
        (
            "deployments.apps",
            {"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
            (
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be '
                "greater than 100%"
            ),
        ),
        (
            "deployments.apps",
            {"minReadySeconds": 600},
            (
                "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than "
                "minReadySeconds"
            ),
        ),
        (
            "deployments.apps",
            {"selector": {}},
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            "replicasets.apps",
            {"template": pod_template(restartPolicy="Never")},
            (
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: '
                '"Always"'
            ),
        ),
        (
            "replicasets.apps",
            {"template": pod_template(activeDeadlineSeconds=5)},
            (
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in "
                "ReplicaSet is not Supported"
            ),
        ),
        (
            "statefulsets.apps",
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
            (
                'spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":'
                "null}: only allowed for updateStrategy 'RollingUpdate'"
            ),
        ),
        (
            "statefulsets.apps",
            {"ordinals": {"start": -1}},
            "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "daemonsets.apps",
            {"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}},
            (
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when "
                "maxUnavailable is non-zero"
            ),
        ),
        (
            "daemonsets.apps",
            {"updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            (
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: "
                "cannot be 0 when "
                "maxSurge is 0"
            ),
        ),
        (
            "jobs.batch",
            {"backoffLimitPerIndex": 1},
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
        ),
        (
            "jobs.batch",
            {"podFailurePolicy": {"rules": [{"action": "Ignore"}]}},
            (
                "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and "
                "OnPodConditions is required"
            ),
        ),
        (
            "jobs.batch",
            {
                "completionMode": "Indexed",
                "completions": 3,
                "successPolicy": {"rules": [{"succeededIndexes": "1,0"}]},
            },
            (
                'spec.successPolicy.rules[0].succeededIndexes: Invalid value: "1,0": error parsing '
                "succeededIndexes: non-increasing order, previous: 1, current: 0"
            ),
        ),
        (
            "jobs.batch",
            {"managedBy": "me"},
            (
                'spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as '
                '"acme.io/foo")'
            ),
        ),
        (
            "cronjobs.batch",
            {"schedule": "60 * * * *"},
            'spec.schedule: Invalid value: "60 * * * *": end of range (60) above maximum (59): 60',
        ),
        (
            "cronjobs.batch",
            {"schedule": "* * *"},
            'spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]',
        ),
        (
            "cronjobs.batch",
            {"timeZone": "Nowhere/Atall"},
            'spec.timeZone: Invalid value: "Nowhere/Atall": unknown time zone Nowhere/Atall',
        ),
        (
            "poddisruptionbudgets.policy",
            {"minAvailable": "x"},
            (
                'spec.minAvailable: Invalid value: "x": a valid percent string must be a numeric '
                "string followed by an ending '%' (e.g. '1%',  or '93%', regex used "
                "for validation is "
                "'[0-9]+%')"
            ),
        ),
    ],
)
async def test_a_refusal_names_the_field_and_what_is_wrong_with_it(
    kind: str, spec: Fields, words: str
) -> None:
    assert words in await refusals(kind, workload(kind, **spec))


@pytest.mark.parametrize(
    "schedule", ["@daily", "@every 1h30m", "*/5 0-6 1,15 jan-mar mon", "? 3/2 * * *"]
)
async def test_schedules_may_be_said_in_all_the_ways_of_cron(schedule: str) -> None:
    assert await refusals("cronjobs.batch", workload("cronjobs.batch", schedule=schedule)) == []


async def refused_change(kind: str, before: Fields, after: Fields, subresource: str) -> list[str]:
    """What is said of a change of an object that is there."""
    backend = await new_backend()
    await create(backend, call_of(backend, kind), before)
    return await _refused_change(backend, kind, after, subresource)


async def _refused_change(
    backend: Backend, kind: str, after: Fields, subresource: str = ""
) -> list[str]:
    def wanted(obj: Fields) -> Fields:
        return {**obj, **{name: {**(obj.get(name) or {}), **after[name]} for name in after}}

    try:
        await change(backend, call_of(backend, kind, "x", subresource), wanted)
    except StatusError as error:
        return cause_messages(error)
    return []


@pytest.mark.parametrize(
    ("kind", "changed", "field"),
    [
        ("deployments.apps", {"selector": {"matchLabels": {"app": "b"}}}, "spec.selector"),
        ("statefulsets.apps", {"serviceName": "other"}, "spec"),
        ("jobs.batch", {"completions": 7}, "spec.completions"),
        ("jobs.batch", {"completionMode": "Indexed"}, "spec.completionMode"),
    ],
)
async def test_what_a_workload_was_made_with_stays(kind: str, changed: Fields, field: str) -> None:
    found = await refused_change(kind, workload(kind), {"spec": changed}, "")
    assert any(problem.startswith(f"{field}: ") for problem in found)


async def test_a_suspended_job_may_be_sent_elsewhere_until_it_has_run() -> None:
    backend = await new_backend()
    await create(backend, call_of(backend, "jobs.batch"), workload("jobs.batch", suspend=True))
    made = await change(backend, call_of(backend, "jobs.batch", "x"), lambda job: job)
    template = made.object()["spec"]["template"]
    elsewhere = {**template, "spec": {**template["spec"], "nodeSelector": {"zone": "a"}}}
    assert await _refused_change(backend, "jobs.batch", {"spec": {"template": elsewhere}}) == []
    otherwise = {**elsewhere, "spec": {**elsewhere["spec"], "hostNetwork": True}}
    found = await _refused_change(backend, "jobs.batch", {"spec": {"template": otherwise}})
    assert any("field is immutable" in problem for problem in found)


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        (
            "deployments.apps",
            {"replicas": 1, "readyReplicas": 2},
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        ),
        (
            "daemonsets.apps",
            {"numberReady": -1},
            "status.numberReady: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "jobs.batch",
            {"conditions": [{"type": "Failed", **CONDITION}]},
            (
                "status.conditions: Invalid value: cannot set Failed=True condition without the "
                "FailureTarget=true condition"
            ),
        ),
        (
            "jobs.batch",
            {"completedIndexes": "1"},
            (
                'status.completedIndexes: Invalid value: "1": cannot set non-empty '
                "completedIndexes "
                "when non-indexed completion mode"
            ),
        ),
        (
            "poddisruptionbudgets.policy",
            {"conditions": [{"type": "a", "status": "Foo"}]},
            (
                'status.conditions[0].status: Unsupported value: "Foo": supported values: "False", '
                '"True", "Unknown"'
            ),
        ),
    ],
)
async def test_a_status_must_make_sense(kind: str, status: Fields, words: str) -> None:
    assert words in await refused_change(kind, workload(kind), {"status": status}, "status")


async def test_a_job_that_has_failed_does_not_come_back() -> None:
    backend = await new_backend()
    await create(backend, call_of(backend, "jobs.batch"), workload("jobs.batch"))
    ends = [{"type": type_, **CONDITION} for type_ in ("FailureTarget", "Failed")]
    failed = {"conditions": ends, "startTime": "2026-01-01T00:00:00Z"}
    assert await _refused_change(backend, "jobs.batch", {"status": failed}, "status") == []
    found = await _refused_change(backend, "jobs.batch", {"status": {"conditions": []}}, "status")
    assert (
        "status.conditions: Invalid value: cannot disable the terminal Failed=True condition"
        in (found)
    )


async def test_a_daemon_set_counts_its_templates() -> None:
    backend = await new_backend()
    key = "deprecated.daemonset.template.generation"
    made = await create(backend, call_of(backend, "daemonsets.apps"), workload("daemonsets.apps"))
    assert made.object()["metadata"]["annotations"] == {key: "1"}
    template = pod_template(hostNetwork=True)
    call = call_of(backend, "daemonsets.apps", "x")
    changed = await change(
        backend, call, lambda one: {**one, "spec": {**one["spec"], "template": template}}
    )
    assert changed.object()["metadata"]["annotations"] == {key: "2"}


indexes = st.sets(st.integers(0, 20)).map(sorted)


def written(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


@given(indexes, indexes)
def test_indexes_are_counted_and_compared_as_sets(one: list[int], other: list[int]) -> None:
    assert count_indexes(written(one), 21) == len(one)
    both = sorted(set(one) & set(other))
    assert overlap(written(one), written(other), 21) == (both[0] if both else None)


@pytest.mark.parametrize("text", ["1-", "-", "1-2-3", "x", "2,1", "3-3", "9", "1,", "٣"])
def test_what_says_no_indexes_is_refused(text: str) -> None:
    with pytest.raises(IndexesError):
        count_indexes(text, 9)
