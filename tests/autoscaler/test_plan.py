"""Plans as `/plan` serves them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from bayplan.autoscaler.plan import AutoscalerPlan, UnremovableNodeInfo, encode_plans


def test_fields_that_were_renamed_are_served_by_their_old_names_too() -> None:
    node = UnremovableNodeInfo("n", "NotUnderutilized")
    plan = AutoscalerPlan(
        datetime(2026, 1, 1, tzinfo=UTC), unremovable=(node,), ignored_pods={"daemonset": 2}
    )
    (served,) = json.loads(encode_plans([plan]))
    assert (
        served["stays"]
        == served["unremovable"]
        == [{"node": "n", "reason": "NotUnderutilized", "pod": "", "detail": ""}]
    )
    assert served["set_aside"] == served["ignored_pods"] == {"daemonset": 2}


def test_statuses_that_were_renamed_are_served_by_their_old_names_too() -> None:
    time = datetime(2026, 1, 1, tzinfo=UTC)
    plans = [AutoscalerPlan(time, status="scaling up"), AutoscalerPlan(time, status="waiting")]
    served = json.loads(encode_plans(plans))
    assert [one["status"] for one in served] == ["scaling up", "waiting"]
    assert [one["deprecated_status"] for one in served] == ["bought", "waiting"]
