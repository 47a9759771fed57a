"""A recording on the page: any moment of it, what follows, and what happened when."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cli.main import run
from bayplan.fit import Profile
from bayplan.kube.events import Event
from bayplan.kube.meta import ObjectMeta, ObjectReference
from bayplan.recordings import Recording, RecordingWriter, identity_of
from bayplan.ui.answers import report_answers
from bayplan.ui.backend import NotAvailableError
from bayplan.ui.encoder import Encoded
from bayplan.ui.replay.backend import Replay
from tests.builders import make_node, make_pod
from tests.fit.random_clusters import random_object
from tests.ui.pages import apply, tables_of

pytestmark = pytest.mark.whole


START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def plain(found: Encoded) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(found.plain)
    return data


@pytest.fixture
def short_recording(tmp_path: Path) -> Iterator[Replay]:
    """A node comes, a pod waits, gets its node, and is gone."""
    pod = make_pod("web", "shop").cpu("1")
    event = Event(
        metadata=ObjectMeta(name="e", namespace="kube-system"),
        regarding=ObjectReference(kind="ConfigMap", namespace="kube-system", name="s"),
        reason="ScaledUpGroup",
        note="group blue: 2 instead of 1 (max: 5)",
        type="Normal",
    )
    with RecordingWriter(tmp_path / "r.bpr", name="test", start=START) as writer:
        writer.record(0.0, make_node("n1").capacity(cpu="4", memory="8Gi", pods=10).obj())
        writer.flush()
        writer.record(10.0, pod.obj())
        writer.record(15.0, event)
        writer.record(20.0, pod.node("n1").phase("Running").obj())
        writer.record(30.0, make_node("n2").obj())
        writer.record_deletion(40.0, identity_of(pod.obj()))
        writer.mark(60.0)
    with Recording(tmp_path / "r.bpr") as recording:
        replay = Replay(recording, "r.bpr", answers=report_answers(Profile()))
        yield replay
        replay.close()


async def test_a_moment_is_shown_as_it_was(short_recording: Replay) -> None:
    states = [tables_of(plain(await short_recording.state(at))) for at in (0.0, 12.0, 25.0, 50.0)]
    assert [list(one["pods"]) for one in states] == [[], ["shop/web"], ["shop/web"], []]
    assert states[1]["pods"]["shop/web"][8] == "waiting"
    assert states[2]["pods"]["shop/web"][8] == "running"
    assert [len(one["nodes"]) for one in states] == [1, 1, 1, 2]
    source = plain(await short_recording.state(12.0))["source"]
    assert (source["from"], source["to"]) == ("2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z")


async def test_playing_on_leads_to_what_seeking_shows(short_recording: Replay) -> None:
    state = plain(await short_recording.state(0.0))
    tables, seq, is_over = tables_of(state), state["seq"], False
    while not is_over:
        found = plain(await short_recording.changes(seq, 2))
        for change in found["changes"]:
            apply(tables, change)
            seq = change["seq"]
        is_over = found["end"]
    last = tables_of(plain(await short_recording.state(60.0)))
    assert {name: tables[name] for name in ("pods", "nodes", "rails", "zones", "events")} == {
        name: last[name] for name in ("pods", "nodes", "rails", "zones", "events")
    }


async def test_the_time_line_counts_and_marks(short_recording: Replay) -> None:
    line = plain(await short_recording.timeline())
    assert line["seconds"] == 60.0
    assert [(one["at"], one["kind"]) for one in line["marks"]] == [
        (15.0, "scale-up"),
        (30.0, "node"),
    ]
    assert len(line["series"]["nodes"]) <= 502
    counts = {name: dict(map(tuple, points)) for name, points in line["series"].items()}
    assert max(counts["waiting"].values()) == 1
    assert counts["nodes"][0.0] == 1


async def test_a_pod_is_explained_in_the_state_that_was_told(short_recording: Replay) -> None:
    state = plain(await short_recording.state(12.0))
    assert json.loads(await short_recording.explain("shop/web", state["seq"]))["pod"] == "shop/web"
    played = plain(
        await short_recording.changes(plain(await short_recording.state(0.0))["seq"], 10)
    )["changes"]
    there = [one["seq"] for one in played if one["seq"] >= state["seq"]][:-1]
    for seq in there:
        assert json.loads(await short_recording.explain("shop/web", seq))["pod"] == "shop/web"
    for seq in (None, played[-1]["seq"]):
        with pytest.raises(LookupError, match="pod shop/web does not exist"):
            await short_recording.explain("shop/web", seq)


async def test_a_recording_is_not_asked_for_what_it_has_not(short_recording: Replay) -> None:
    with pytest.raises(NotAvailableError):
        await short_recording.changes(-1, 10)
    assert short_recording.listen(3) is not None


@given(st.integers(0, 5000), st.integers(1, 40), st.integers(1, 7))
@settings(max_examples=15)
async def test_seeking_and_playing_agree_on_any_recording(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: int, most: int
) -> None:
    path = tmp_path_factory.mktemp("recorded") / "r.bpr"
    rng, at = random.Random(seed), 0.0
    with RecordingWriter(path, name="test", start=START) as writer:
        for _ in range(steps):
            obj, at = random_object(rng), at + rng.choice([0.0, 0.7, 5.0])
            if rng.random() < 0.3:
                writer.record_deletion(at, identity_of(obj))
            else:
                writer.record(at, obj)
    with Recording(path) as recording:
        replay = Replay(recording, "r")
        state = plain(await replay.state(0.0))
        tables, seq, is_over = tables_of(state), state["seq"], False
        while not is_over:
            found = plain(await replay.changes(seq, most))
            for change in found["changes"]:
                apply(tables, change)
                seq = change["seq"]
            is_over = found["end"]
        last = tables_of(plain(await replay.state(recording.seconds)))
        replay.close()
    for name in ("pods", "nodes", "rails", "zones"):
        assert tables[name] == last[name]


async def test_a_moment_at_which_nothing_happened_is_told_as_that_moment(
    short_recording: Replay,
) -> None:
    times = [plain(await short_recording.state(at))["time"] for at in (42.0, 55.0, 42.0)]
    assert times == [f"2026-03-01T12:00:{second}Z" for second in (42, 55, 42)]


@pytest.fixture
def queue_run(tmp_path: Path) -> Path:
    """A run in which pods wait for their queue."""
    lab, path = "examples/stories/5-queue-says-not-yet.yaml", tmp_path / "run.bpr"
    crew = ("--with", "scheduler,autoscaler,queues")
    assert run(["up", "-f", lab, "--virtual", "--for", "2m", *crew, "--record", str(path)]) == 0
    return path


async def test_queues_go_on_as_a_recording_is_played(queue_run: Path) -> None:
    with Recording(queue_run) as recording:
        replay = Replay(recording, "run.bpr", answers=report_answers(Profile()))
        state = plain(await replay.state(0.0))
        tables, played = tables_of(state), plain(await replay.changes(state["seq"], 2000))
        assert played["end"]
        for change in played["changes"]:
            apply(tables, change)
        last = tables_of(plain(await replay.state(recording.seconds)))
        replay.close()
    assert tables["queues"]["research"] == last["queues"]["research"]
    assert tables["waiting"] == last["waiting"]
    assert {row[1] for row in tables["waiting"].values()} == {"queue"}
