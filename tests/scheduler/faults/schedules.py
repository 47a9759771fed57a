"""Random schedules: pods that come and go, faults that come and go, schedulers that are killed."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.scheduler.faults.wire import Fault, How, Target

KINDS = ("", "/pods", "/binding$", "/persistentvolume", "/status$", "/events", "/pods$", "/nodes$")
METHODS = ("", "", "GET", "POST", "PATCH", "DELETE")
LAST = 200.0
"""When the last fault has come to its end."""
LEASE = 15.0
"""Seconds between the death of a leader and the next: nothing of the dead one's arrives later."""
_REFUSALS = (403, 404, 409, 422, 429, 500, 503, 504)
_LIES = (409, 500, 504)
"""What a server may say that has acted nevertheless."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod, and what happens to it."""

    name: str
    at: float
    cpu: str
    claims: int
    priority: str
    ungated_at: float | None
    deleted_at: float | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that happens in one run."""

    arrivals: tuple[Arrival, ...]
    faults: tuple[Fault, ...]
    killed_at: float | None


def moments(most: float) -> st.SearchStrategy[float]:
    """Moments, to a tenth of a second."""
    return st.integers(0, int(most * 10)).map(lambda tenths: tenths / 10)


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Arrival, ...]:
    """Pods: more than fit, as a rule."""
    return tuple(
        Arrival(
            f"p{number}",
            draw(moments(100.0)),
            draw(st.sampled_from(("100m", "500m", "1", "2", "3"))),
            draw(st.sampled_from((0, 0, 0, 1, 2))),
            draw(st.sampled_from(("", "", "low", "high"))),
            draw(st.one_of(st.none(), st.none(), moments(LAST))),
            draw(st.one_of(st.none(), st.none(), st.none(), moments(LAST))),
        )
        for number in range(draw(st.integers(1, 24)))
    )


@st.composite
def faults(draw: st.DrawFn) -> Fault:
    """Something that goes wrong, with some requests, for a while."""
    how = draw(st.sampled_from(How))
    start = draw(moments(LAST - 50.0))
    end = min(LAST, start + draw(moments(150.0)))
    target = Target(draw(st.sampled_from(METHODS)), draw(st.sampled_from(KINDS)), start, end)
    codes = _LIES if how is How.FAILED else _REFUSALS
    return Fault(
        how,
        target,
        draw(st.sampled_from(codes)),
        draw(st.sampled_from((None, 1, 40))),
        draw(st.sampled_from((0.5, 5.0, LEASE - 2.0))),
        draw(st.sampled_from((0.2, 0.6, 1.0))),
    )


schedules = st.builds(
    Schedule,
    arrivals(),
    st.lists(faults(), max_size=6).map(tuple),
    st.one_of(st.none(), st.none(), moments(150.0)),
)
