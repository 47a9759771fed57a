"""The gate: who gets it, and that the patch is right whatever the pod has already."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.admission.pods import POD, gate_patch
from bayplan.client.objects import encode
from bayplan.embedded.apiserver.patch.patches import apply_json_patch
from tests.admission.reviews import GATE, ask, make_app, review

FOREIGN = "example.com/wait"
ASKS = {GATE: "true"}


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "metadata": {"name": "a"},
        "spec": {"schedulerName": "bayplan", "containers": [{"name": "c"}], **spec},
    }
    if annotations is not None:
        made["metadata"]["annotations"] = annotations
    return made


async def test_a_pod_without_gates_gets_a_list_of_one() -> None:
    answer = await ask(make_app(), "/pods/mutate", review("pods", "CREATE", pod(ASKS)))
    assert answer.patch == [
        {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]}
    ]


async def test_a_pod_with_gates_gets_one_more() -> None:
    asked = review("pods", "CREATE", pod(ASKS, schedulingGates=[{"name": FOREIGN}]))
    answer = await ask(make_app(), "/pods/mutate", asked)
    assert answer.patch == [
        {"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": GATE}}
    ]


async def test_the_key_of_the_proposal_counts_too() -> None:
    asked = review("pods", "CREATE", pod({"volcano.sh/queue-allocation-gate": "true"}))
    assert (await ask(make_app(), "/pods/mutate", asked)).patch


@pytest.mark.parametrize(
    "made",
    [
        pod(),
        pod({GATE: "false"}),
        pod({GATE: "True"}),
        pod(ASKS, schedulingGates=[{"name": GATE}]),
        pod(ASKS, schedulerName="default-scheduler"),
        pod(ASKS, schedulerName=None),
        pod(ASKS, nodeName="n1"),
    ],
    ids=["plain", "says-no", "not-exactly-true", "has-it", "others", "nobody's", "placed"],
)
async def test_others_are_left_as_they_are(made: dict[str, Any]) -> None:
    answer = await ask(make_app(), "/pods/mutate", review("pods", "CREATE", made))
    assert answer.response == {"uid": "u-1", "allowed": True}


async def test_pods_of_every_scheduler_that_is_ours_are_gated() -> None:
    app = make_app(schedulers=("default-scheduler", "batch"))
    for name in ("batch", "default-scheduler", None):
        asked = review("pods", "CREATE", pod(ASKS, schedulerName=name))
        assert (await ask(app, "/pods/mutate", asked)).patch


async def test_nothing_but_new_pods_is_changed() -> None:
    app = make_app()
    for asked in (
        review("pods", "UPDATE", pod(ASKS), pod(ASKS)),
        review("pods", "CREATE", pod(ASKS), subresource="eviction"),
        review("queues", "CREATE", pod(ASKS)),
    ):
        assert not (await ask(app, "/pods/mutate", asked)).patch


async def test_off_and_on_again() -> None:
    asked = review("pods", "CREATE", pod(ASKS))
    for gates, patched in (("", True), ("QueueAllocationGate=false", False), ("", True)):
        answer = await ask(make_app(gates=gates), "/pods/mutate", asked)
        assert bool(answer.patch) is patched


GATES = st.none() | st.lists(st.sampled_from([GATE, FOREIGN, "other.io/gate"]), unique=True)


@given(
    gates=GATES,
    says=st.sampled_from([None, "true", "false", "TRUE", ""]),
    says_too=st.sampled_from([None, "true", "false"]),
    scheduler=st.sampled_from(["bayplan", "default-scheduler", None]),
    node=st.sampled_from([None, "", "n1"]),
    is_null=st.booleans(),
)
def test_a_pod_ends_up_with_exactly_the_right_gates(
    gates: list[str] | None,
    says: str | None,
    says_too: str | None,
    scheduler: str | None,
    node: str | None,
    is_null: bool,
) -> None:
    written = {GATE: says, "volcano.sh/queue-allocation-gate": says_too, "a/b": "c"}
    made = pod({key: value for key, value in written.items() if value is not None})
    made["spec"].update(schedulerName=scheduler, nodeName=node)
    if gates is not None:
        made["spec"]["schedulingGates"] = [{"name": name} for name in gates]
    elif is_null:
        made["spec"]["schedulingGates"] = None
    operations = gate_patch(POD.decode(encode(made)), {"bayplan"})
    patched = apply_json_patch(deepcopy(made), [dict(one) for one in operations])
    found = [gate["name"] for gate in patched["spec"].get("schedulingGates") or ()]
    held = gates or []
    wanted = "true" in (says, says_too) and scheduler == "bayplan" and not node
    assert found == [*held, *([GATE] if wanted and GATE not in held else [])]
    rest = {key: value for key, value in patched["spec"].items() if key != "schedulingGates"}
    assert rest == {key: value for key, value in made["spec"].items() if key != "schedulingGates"}
