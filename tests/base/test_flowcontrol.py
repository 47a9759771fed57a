"""Rates, waits that double, and when to try again."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.flowcontrol import ExponentialBackoff, RetryPolicy, TokenBucket, exponential_delay


def test_a_wait_doubles_up_to_its_longest() -> None:
    assert [exponential_delay(10, 300, times) for times in range(7)] == [
        10,
        20,
        40,
        80,
        160,
        300,
        300,
    ]
    assert exponential_delay(10, 300, 10_000) == 300


def test_a_burst_is_allowed_and_then_the_rate() -> None:
    bucket = TokenBucket(qps=5, burst=10)
    assert [bucket.take(0) for _ in range(11)] == [True] * 10 + [False]
    assert bucket.take(0.2)
    assert not bucket.take(0.2)


def test_no_rate_is_no_limit() -> None:
    bucket = TokenBucket(qps=0, burst=1)
    assert all(bucket.take(0) for _ in range(100))


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        TokenBucket(qps=-1, burst=1)


@given(st.lists(st.floats(0, 10), max_size=60), st.floats(0.5, 20), st.integers(1, 20))
def test_never_more_than_burst_and_rate_together(
    pauses: list[float], qps: float, burst: int
) -> None:
    bucket, now, taken = TokenBucket(qps, burst), 0.0, 0
    for pause in pauses:
        now += pause
        taken += bucket.take(now)
    assert taken <= burst + now * qps + 1e-6


@given(
    st.floats(0.1, 100),
    st.integers(1, 20),
    st.lists(st.floats(0, 5), max_size=60),
)
def test_no_window_of_time_sees_more_than_burst_and_rate_allow(
    qps: float, burst: int, pauses: list[float]
) -> None:
    bucket, now = TokenBucket(qps, burst), 0.0
    granted = []
    for pause in pauses:
        now += pause
        granted.append(now + bucket.reserve(now))
    assert granted == sorted(granted)
    for first in range(len(granted)):
        for last in range(first, len(granted)):
            window = granted[last] - granted[first]
            assert last - first + 1 <= burst + window * qps + 1e-6


@given(st.integers(1, 100), st.floats(0, 1))
def test_a_policy_gives_up_in_the_end_and_waits_no_longer_than_it_is_willing_to(
    failures: int, chance: float
) -> None:
    policy = RetryPolicy(attempts=6, first_wait=0.2, longest_wait=30)
    wait = policy.wait(failures, None, lambda: chance)
    assert (wait is None) == (failures >= 6)
    assert wait is None or 0.2 * 2 ** (failures - 1) <= wait <= 30


def test_a_servers_word_is_heeded_unless_it_asks_for_too_much() -> None:
    policy = RetryPolicy(attempts=6, longest_wait=30)
    assert policy.wait(1, 7.0, lambda: 1.0) == 7.0
    assert policy.wait(1, 31.0, lambda: 1.0) is None


@given(st.integers(0, 100), st.randoms(use_true_random=False))
def test_waits_grow_to_their_longest_and_start_over(failed: int, rng: Random) -> None:
    backoff = ExponentialBackoff(rng, first=0.5, longest=30)
    waits = [backoff.next_wait() for _ in range(failed)]
    assert all(0.5 <= wait <= 30 for wait in waits)
    assert all(wait == 30 for wait in waits[7:])
    backoff.reset()
    assert backoff.next_wait() <= 1
