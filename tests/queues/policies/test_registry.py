"""Every policy is registered under its own name, which is what flags and files may say."""

from __future__ import annotations

from typing import get_args

from bayplan.queues.policies import POLICIES, VOLCANO_POLICIES, QueuePolicyName


def test_policies_are_known_by_their_names() -> None:
    assert get_args(QueuePolicyName) == tuple(POLICIES) == tuple(VOLCANO_POLICIES)
    assert all(one.name == name for name, one in POLICIES.items())


def test_only_volcano_caps_queues_at_what_they_deserve() -> None:
    assert not any(one.caps_at_deserved for one in POLICIES.values())
    assert VOLCANO_POLICIES["proportion"].caps_at_deserved
