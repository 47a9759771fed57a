"""A recording of a run is a trace of its work; recording changes nothing in the run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from bayplan.kube.volcano import GROUP_MIN_MEMBER
from bayplan.lab.simulation.pool import run_simulation
from bayplan.lab.traces.recorded_trace import trace_from_recording
from bayplan.lab.traces.rows import TraceError, parse_rows, validate_trace
from bayplan.observe.recorder import ClusterRecorder
from bayplan.recordings import RecordingWriter, identity_of
from tests.builders import make_pod
from tests.lab.simulation.runs import FULL, RUNS_OF_FULL, run_of_full, run_spec, variant
from tests.lab.traces.test_rows import CLUSTER, TRACE

pytestmark = pytest.mark.whole


START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def _recorded(path: Path, text: bytes, trace: str = "") -> str:
    recorder = ClusterRecorder(
        lambda clock: RecordingWriter(path, name="run", start=clock.now()), flush_seconds=600.0
    )
    asked = msgspec.structs.replace(run_spec(variant(text)), trace=trace)
    return run_simulation(asked, extra_daemons=[recorder.lead]).digest


def test_what_was_recorded_arrives_again(tmp_path: Path) -> None:
    _recorded(tmp_path / "run.bpr", CLUSTER, TRACE)
    found = list(parse_rows(validate_trace(trace_from_recording(tmp_path / "run.bpr"))))
    assert [round(one.arrival) for one in found] == [60, 60, 60, 90, 600, 600]
    wanted = [300, 300, 300, 60, None, None]
    for one, duration in zip(found, wanted, strict=True):
        assert one.duration == (None if duration is None else pytest.approx(duration, abs=2))
    assert dict(found[0].requests) == {"cpu": "500m", "memory": "1073741824"}
    assert [(one.count, one.size, one.storage_class) for one in found[3].claims] == [
        (2, "5Gi", "disks")
    ]
    assert found[3].priority == 100
    again = msgspec.structs.replace(
        run_spec(variant(CLUSTER)), trace=trace_from_recording(tmp_path / "run.bpr")
    )
    assert run_simulation(again).figures["podsRan"] == 6


def test_pods_that_ran_when_the_recording_began_run_until_they_ended(tmp_path: Path) -> None:
    pod = make_pod("early").obj()
    pod.metadata.uid, pod.status.phase = "early", "Running"
    with RecordingWriter(tmp_path / "run.bpr", name="run", start=START) as writer:
        writer.record(0.0, pod)
        writer.record_deletion(100.0, identity_of(pod))
    (found,) = parse_rows(validate_trace(trace_from_recording(tmp_path / "run.bpr")))
    assert (found.arrival, found.duration) == (0.0, 100.0)


def test_pods_that_ask_for_no_amount_are_an_error(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "run.bpr", name="run", start=START) as writer:
        writer.record(0.0, make_pod("odd").cpu("lots").obj())
    with pytest.raises(TraceError, match="lots"):
        trace_from_recording(tmp_path / "run.bpr")


def test_a_gang_of_more_than_can_be_counted_is_none(tmp_path: Path) -> None:
    pod = make_pod("odd").obj()
    pod.metadata.annotations = {GROUP_MIN_MEMBER: "9" * 6000}
    with RecordingWriter(tmp_path / "run.bpr", name="run", start=START) as writer:
        writer.record(0.0, pod)
    (found,) = parse_rows(validate_trace(trace_from_recording(tmp_path / "run.bpr")))
    assert found.gang <= 1


@RUNS_OF_FULL
def test_recording_changes_nothing_in_a_run(tmp_path: Path) -> None:
    assert _recorded(tmp_path / "run.bpr", FULL.read_bytes()) == run_of_full().digest


def test_a_recording_that_was_cut_is_told_with_how_far_it_goes(tmp_path: Path) -> None:
    whole = tmp_path / "whole.bpr"
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with RecordingWriter(whole, name="run", start=start) as writer:
        for minute in range(3):
            writer.record(60.0 * minute, make_pod(f"p{minute}").obj())
            writer.flush()
    data, told = whole.read_bytes(), list[str]()
    header = data.index(b"BPRB", data.index(b"BPRB") + 1)
    (tmp_path / "cut.bpr").write_bytes(data[:-5])
    assert (
        len(
            list(
                parse_rows(validate_trace(trace_from_recording(tmp_path / "cut.bpr", told.append)))
            )
        )
        == 2
    )
    (note,) = told
    assert note.startswith(f"{tmp_path / 'cut.bpr'}: the last ")
    assert note.endswith("bytes cannot be read; the trace ends after 1m")
    trace_from_recording(whole, told.append)
    assert told == [note]
    for length, said in (
        (0, "truncated in its header, at byte 0"),
        (9, "truncated in its header, at"),
    ):
        (tmp_path / "cut.bpr").write_bytes(data[:length])
        with pytest.raises(TraceError, match=said):
            trace_from_recording(tmp_path / "cut.bpr")
    for length in (header, header + 7):
        (tmp_path / "cut.bpr").write_bytes(data[:length])
        with pytest.raises(TraceError, match="it has no changes"):
            trace_from_recording(tmp_path / "cut.bpr")


def test_what_is_no_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd.bpr").write_bytes(b"arrival")
    for name, said in (("odd.bpr", "not a recording"), ("none.bpr", "No such file")):
        with pytest.raises(TraceError, match=said):
            trace_from_recording(tmp_path / name)
