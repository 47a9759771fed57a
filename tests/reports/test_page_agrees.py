"""The page and the commands give the same answer to the same question."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bayplan.cli.main import run
from bayplan.fit import Profile, Snapshot
from bayplan.kube.manifests import load
from bayplan.ui.answers import FrozenCluster, PageAnswers, report_answers
from tests.cli.clusters import EXAMPLE

PODS = ("shop/ledger-15", "shop/ledger-0")
GROUPS = EXAMPLE.parent / "groups.yaml"
QUEUES = EXAMPLE.parent / "queues"


def command_json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    run([*words, "-o", "json"])
    return json.loads(capsys.readouterr().out)


def still_of(where: str) -> FrozenCluster:
    return FrozenCluster(
        load(where).objects, Profile().by_scheduler(), datetime(2026, 1, 1, tzinfo=UTC)
    )


def page() -> PageAnswers:
    return report_answers(Profile(), GROUPS)


@pytest.mark.parametrize("pod", PODS)
def test_an_explanation(pod: str, capsys: pytest.CaptureFixture[str]) -> None:
    still = still_of(str(EXAMPLE))
    snapshot = Snapshot(still.objects, profile=still.profile)
    (told,) = command_json(capsys, "explain", pod, "-f", str(EXAMPLE))["explanations"]
    for step in (step for fix in told["fixes"] for step in fix["steps"]):
        if "needs-manual-steps" in step["risks"]:  # the page shows no deprecated names
            step["risks"].remove("needs-hands")
    assert json.loads(json.dumps(page().explain(snapshot, still, pod))) == told


def test_the_next_plan(capsys: pytest.CaptureFixture[str]) -> None:
    row = page().plan(still_of(str(EXAMPLE)))
    assert row is not None
    told = command_json(capsys, "plan", "-f", str(EXAMPLE), "--groups", str(GROUPS))
    steps: Any = row[3]
    removals: Any = row[5]
    assert steps
    assert [(one["group"], one["nodes"], one["cost"]) for one in steps] == [
        (one["group"], one["to"] - one["from"], one["cost"]) for one in told["scaleUps"]
    ]
    assert row[6] == told["cost"]
    assert [one["node"] for one in removals] == [one["node"] for one in told["removals"]]


def test_queues_and_the_pods_that_they_hold(capsys: pytest.CaptureFixture[str]) -> None:
    found = page().queues(still_of(str(QUEUES)))
    told = command_json(capsys, "queues", "-f", str(QUEUES))["queues"]
    assert [(row[2], row[6], row[7], row[8]) for row in found.rows] == [
        (one["name"], one["quota"], one["allocated"], one["reserved"]) for one in told
    ]
    waiting = [group for one in told for group in one["waiting"]]
    expected = {
        pod: f"queue {one['queue']}: {one['waitsFor']}" for one in waiting for pod in one["pods"]
    }
    assert found.held
    assert found.held.items() <= expected.items()
