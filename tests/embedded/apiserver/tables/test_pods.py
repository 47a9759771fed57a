"""What a pod's row says in `kubectl get pods`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bayplan.embedded.apiserver.tables.pods import POD, pod_conditions

NOW = datetime(2025, 1, 1, 1, 0, tzinfo=UTC)
ENDED = {"terminated": {"exitCode": 0, "finishedAt": "2025-01-01T00:55:00Z"}}


def row(spec: dict[str, Any], status: dict[str, Any], **meta: Any) -> list[Any]:
    pod = {"metadata": {"name": "a", **meta}, "spec": spec, "status": status}
    return [column.cell(pod, NOW) for column in POD[1:4]]


@pytest.mark.parametrize(
    ("spec", "status", "cells"),
    [
        ({"containers": [{"name": "c"}]}, {"phase": "Pending"}, ["0/1", "Pending", "0"]),
        (
            {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]},
            {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {}}]},
            ["0/1", "Init:0/1", "0"],
        ),
        (
            {
                "containers": [{"name": "c"}],
                "initContainers": [{"name": "s", "restartPolicy": "Always"}],
            },
            {
                "phase": "Running",
                "initContainerStatuses": [{"name": "s", "started": True, "ready": True}],
                "containerStatuses": [{"name": "c", "ready": True, "state": {"running": {}}}],
            },
            ["2/2", "Running", "0"],
        ),
        (
            {"containers": [{"name": "c"}]},
            {
                "phase": "Running",
                "containerStatuses": [
                    {
                        "name": "c",
                        "restartCount": 4,
                        "lastState": ENDED,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    }
                ],
            },
            ["0/1", "CrashLoopBackOff", "4 (5m ago)"],
        ),
        (
            {"containers": [{"name": "c"}]},
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"signal": 9}}}]},
            ["0/1", "Signal:9", "0"],
        ),
    ],
)
def test_a_pod_s_row(spec: dict[str, Any], status: dict[str, Any], cells: list[str]) -> None:
    assert row(spec, status) == cells


def test_a_pod_that_goes_says_so_until_it_is_over() -> None:
    going = "2025-01-01T00:00:00Z"
    assert row({}, {"phase": "Running"}, deletionTimestamp=going)[1] == "Terminating"
    assert row({}, {"phase": "Succeeded"}, deletionTimestamp=going)[1] == "Succeeded"


def test_a_pod_that_is_over_says_so_beside_its_cells() -> None:
    pod = {"metadata": {"name": "a"}, "status": {"phase": "Failed"}}
    assert [one["reason"] for one in pod_conditions(pod)] == ["Failed"]
