"""A failing pull is tried again later and later, for each pod and image."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.images.manager.pulls import KeyedBackoff


def test_the_wait_doubles_up_to_its_longest() -> None:
    backoff, now, waits = KeyedBackoff(), 0.0, []
    for _ in range(7):
        backoff.failed("pod_image", now, "no")
        waits.append(backoff.remaining("pod_image", now))
        now += waits[-1]
    assert waits == [10, 20, 40, 80, 160, 300, 300]


def test_who_did_not_fail_does_not_wait() -> None:
    backoff = KeyedBackoff()
    backoff.failed("one_image", 0, "no")
    assert backoff.remaining("other_image", 0) == 0


def test_a_long_quiet_key_starts_over() -> None:
    backoff = KeyedBackoff()
    backoff.failed("key", 0, "first")
    backoff.failed("key", 10, "second")
    assert backoff.remaining("key", 10) == 20
    assert backoff.remaining("key", 611) == 0
    backoff.failed("key", 611, "third")
    assert backoff.remaining("key", 611) == 10
    assert backoff.cause("key") == "third"


def test_expired_keys_are_forgotten() -> None:
    backoff = KeyedBackoff()
    backoff.failed("old", 0, "no")
    backoff.failed("new", 600, "no")
    backoff.forget_expired(601)
    assert len(backoff) == 1
    assert backoff.cause("old") == ""


@given(st.lists(st.floats(0, 2000), min_size=1, max_size=20))
def test_a_wait_is_never_longer_than_the_longest(pauses: list[float]) -> None:
    backoff, now = KeyedBackoff(), 0.0
    for pause in pauses:
        now += pause
        backoff.failed("key", now, "no")
        assert backoff.initial <= backoff.remaining("key", now) <= backoff.longest
