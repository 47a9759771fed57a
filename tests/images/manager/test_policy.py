"""The default pull policy depends on the tag alone."""

from __future__ import annotations

import pytest

from bayplan.images.manager.image_request import PullPolicy, effective_policy

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", PullPolicy.ALWAYS),
        ("busybox:latest", PullPolicy.ALWAYS),
        (f"busybox:latest@{DIGEST}", PullPolicy.ALWAYS),
        ("localhost:5000/busybox", PullPolicy.ALWAYS),
        ("busybox:1.35", PullPolicy.IF_NOT_PRESENT),
        (f"busybox@{DIGEST}", PullPolicy.IF_NOT_PRESENT),
    ],
)
def test_the_default_is_always_for_latest_only(image: str, policy: PullPolicy) -> None:
    assert effective_policy("", image) is policy


@pytest.mark.parametrize("policy", list(PullPolicy))
def test_a_written_policy_is_taken_as_it_is(policy: PullPolicy) -> None:
    assert effective_policy(policy.value, "busybox:latest") is policy


def test_only_always_does_not_look_first() -> None:
    assert [policy for policy in PullPolicy if not policy.checks_node_first] == [PullPolicy.ALWAYS]
