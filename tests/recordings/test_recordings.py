"""What was recorded is read again, at any moment, however the writing ended."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.recordings import (
    ObjectIdentity,
    RecordedObject,
    Recording,
    RecordingError,
    RecordingFullError,
    RecordingWriter,
    identity_of,
)
from bayplan.recordings import reader as reading
from bayplan.recordings import writer as writing
from bayplan.recordings.format import MAGIC, BlockType, pack_block
from bayplan.recordings.objects import encode_object
from bayplan.recordings.reader import apply_change
from tests.builders import make_node, make_pod
from tests.fit.random_clusters import random_object

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
States = list[tuple[float, dict[ObjectIdentity, RecordedObject]]]


def record(path: Path, seed: int, steps: int) -> States:
    """Write random changes, and say how things stood after each."""
    rng, at, there = random.Random(seed), 0.0, dict[ObjectIdentity, RecordedObject]()
    states: States = []
    with RecordingWriter(path, name="test", start=START) as writer:
        for _ in range(steps):
            at = round(at + rng.choice([0.0, 0.5, 10.0]), 3)
            obj = random_object(rng)
            if there and rng.random() < 0.25:
                gone = rng.choice(sorted(there))
                writer.record_deletion(at, gone)
                del there[gone]
            else:
                writer.record(at, obj)
                there[identity_of(obj)] = obj
            if rng.random() < 0.3:
                writer.flush()
            states.append((at, dict(there)))
    return states


def encoded(objects: dict[ObjectIdentity, RecordedObject]) -> dict[ObjectIdentity, bytes]:
    return {key: encode_object(obj) for key, obj in objects.items()}


@given(st.integers(0, 10_000), st.integers(1, 40))
@settings(max_examples=40)
def test_seeking_gives_what_was_there_and_equals_playing_from_the_start(
    seed: int, steps: int
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "r.bpr"
        states = record(path, seed, steps)
        with Recording(path) as recording:
            played = dict[ObjectIdentity, RecordedObject]()
            last = dict(states)
            changes = list(recording.after(0))
            for at, objects in last.items():
                found = recording.state_at(at)
                assert encoded(found.objects) == encoded(objects)
                while changes and changes[0].seq <= found.seq:
                    apply_change(played, changes.pop(0))
                assert encoded(played) == encoded(objects)
            assert not changes
            assert recording.seconds >= states[-1][0]


def test_keyframes_are_written_now_and_then_so_that_seeking_stays_cheap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LEAST_KEYFRAME", 2000)
    states = record(tmp_path / "r.bpr", 1, 200)
    with Recording(tmp_path / "r.bpr") as recording:
        assert len(recording._keyframes) > 3
        for at, objects in dict(states).items():
            assert encoded(recording.state_at(at).objects) == encoded(objects)


@given(st.integers(0, 1000), st.floats(0.0, 1.0))
@settings(max_examples=60)
def test_a_file_that_is_cut_anywhere_is_read_up_to_its_last_whole_block(
    seed: int, share: float
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "r.bpr"
        states = record(path, seed, 12)
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])
        try:
            recording = Recording(path)
        except RecordingError:
            return  # not even its header is left
        with recording:
            known = [encoded(objects) for _, objects in states] + [{}]
            assert encoded(recording.state_at(recording.seconds).objects) in known


@given(st.integers(0, 1000), st.floats(0.0, 0.999), st.integers(1, 255))
@settings(max_examples=60)
def test_a_damaged_file_is_an_error_that_names_the_place_or_is_told_to_be_cut(
    seed: int, share: float, flip: int
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "r.bpr"
        states = record(path, seed, 12)
        content = bytearray(path.read_bytes())
        content[int(len(content) * share)] ^= flip
        path.write_bytes(bytes(content))
        try:
            with Recording(path) as recording:
                found = [encoded(recording.state_at(at).objects) for at, _ in states]
                is_cut = bool(recording.truncated_bytes)
        except RecordingError:
            pass  # it is said, and where
        else:
            whole = [encoded(dict(states)[at]) for at, _ in states]
            assert is_cut or found == whole


def test_who_is_killed_while_recording_leaves_what_was_flushed(tmp_path: Path) -> None:
    path = tmp_path / "r.bpr"
    code = f"""
import time
from datetime import UTC, datetime
from pathlib import Path
from bayplan.recordings import RecordingWriter
from tests.builders import make_node
writer = RecordingWriter(Path({str(path)!r}), name="k", start=datetime.now(UTC))
for n in range(1000):
    writer.record(float(n), make_node(f"n{{n}}").obj())
    if n == 500:
        writer.flush(sync=True)
print("flushed", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"flushed\n"
        process.send_signal(signal.SIGKILL)
    with Recording(path) as recording:
        assert len(recording.state_at(1e9).objects) >= 501


def test_what_is_nobodys_business_is_not_recorded(tmp_path: Path) -> None:
    pod = make_pod("p").obj()
    pod.metadata.annotations = {"example.com/secret": "s3cret", "volcano.sh/queue-name": "q"}
    pod.metadata.resource_version = "77"
    with RecordingWriter(tmp_path / "r", name="n", start=START) as writer:
        assert writer.record(0.0, pod)
        pod.metadata.resource_version = "78"
        assert not writer.record(1.0, pod), "a new version that says nothing new"
        writer.record(
            2.0,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "c", "namespace": "kube-system"},
                "data": {"status": "time: now", "password": "s3cret"},
            },
        )
    with Recording(tmp_path / "r") as recording:
        found = recording.state_at(5.0).objects
    kept = found[ObjectIdentity("v1", "Pod", "default/p")]
    assert isinstance(kept, Pod)
    assert kept.metadata.annotations == {"volcano.sh/queue-name": "q"}
    config = found[ObjectIdentity("v1", "ConfigMap", "kube-system/c")]
    assert isinstance(config, dict)
    assert config["data"] == {"status": "time: now"}


def test_a_recording_grows_no_larger_than_it_may(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r", name="n", start=START, most_bytes=20_000)

    def fill() -> None:
        for number in range(100_000):
            writer.record(float(number), make_node(f"n{number:06}").obj())
            writer.flush()

    with pytest.raises(RecordingFullError):
        fill()
    writer._file.close()
    assert (tmp_path / "r").stat().st_size <= 20_000
    with Recording(tmp_path / "r") as recording:
        objects = recording.state_at(1e9).objects.values()
        assert all(isinstance(one, Node) for one in objects)


@pytest.mark.parametrize("content", [b"hello", b"bayplan recording 9\n", b"{}" * 100])
def test_what_is_no_recording_is_said_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(RecordingError, match="not a recording"):
        Recording(tmp_path / "r")


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        RecordingWriter(tmp_path / "r", name="n", start=START)
    assert (tmp_path / "r").read_bytes() == b"precious"


def test_only_its_owner_can_read_a_recording(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "r.bpr", name="r", start=START) as writer:
        assert writer.path.stat().st_mode & 0o777 == 0o600


def test_kinds_that_are_not_ours_cannot_be_recorded_unnamed() -> None:
    with pytest.raises(ValueError, match="cannot be recorded"):
        identity_of({"kind": "Thing"})
    with pytest.raises(ValueError, match="objects of kind KubeObject are not recorded"):
        identity_of(KubeObject())


def _bomb(path: Path, part: BlockType, before: bytes, parts: int) -> None:
    """A small file whose objects, each with a name of its own, unpack to much."""
    header = b'{"name":"b","start":"2026-01-01T00:00:00Z"}'
    blocks = [pack_block(BlockType.HEADER, 0, 0.0, header)]
    kinds = [part] * (parts - 1) + [BlockType.KEYFRAME_END if part is BlockType.KEYFRAME else part]
    for number, kind in enumerate(kinds):
        node = b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n%d","labels":{"a":"%b"}}}'
        line = node % (number, b"x" * (4 << 20))
        data = before + line + (b"}" if before else b"")
        blocks.append(pack_block(kind, number if before else 0, 0.0, data))
    path.write_bytes(MAGIC + b"".join(blocks))


@pytest.mark.parametrize(
    ("part", "before"), [(BlockType.KEYFRAME, b""), (BlockType.CHANGES, b'{"at":0.0,"set":')]
)
def test_a_small_file_that_holds_much_too_much_is_refused(
    tmp_path: Path, part: BlockType, before: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "STATE_BYTES", 16 << 20)
    _bomb(tmp_path / "r", part, before, 3)
    with Recording(tmp_path / "r") as recording:
        assert len(recording.state_at(0.0).objects) == 3
    _bomb(tmp_path / "r", part, before, 6)
    with Recording(tmp_path / "r") as recording, pytest.raises(RecordingError, match="too large"):
        recording.state_at(0.0)


def test_blocks_without_number_are_refused_and_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_BLOCKS", 20)
    monkeypatch.setattr(reading, "MOST_BLOCKS", 20)
    writer = RecordingWriter(tmp_path / "r", name="n", start=START)
    for number in range(1, 19):
        writer.mark(float(number))
    with pytest.raises(RecordingFullError, match="maximum of 20 blocks"):
        writer.mark(99.0)
    writer.close()
    with Recording(tmp_path / "r") as recording:
        assert recording.seconds == 18.0
    with (tmp_path / "r").open("ab") as file:
        file.write(pack_block(BlockType.CHANGES, 0, 99.0, b""))
    with pytest.raises(RecordingError, match="more than 20 blocks"):
        Recording(tmp_path / "r")
