"""Moments that no date can tell are refused, and not met with later."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bayplan.recordings import Recording, RecordingError
from bayplan.recordings.format import MAGIC, BlockType, pack_block

NOW = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("start", "at"), [(NOW, "1e300"), (NOW, "-1"), ("9999-12-31T23:59:59Z", "1")]
)
def test_a_moment_without_a_date_is_refused(start: str, at: str, tmp_path: Path) -> None:
    header = msgspec.json.encode({"name": "x", "start": start})
    line = f'{{"at":{at},"drop":["v1","Pod","a/b"]}}'.encode()
    path = tmp_path / "far.bpr"
    path.write_bytes(
        MAGIC
        + pack_block(BlockType.HEADER, 0, 0.0, header)
        + pack_block(BlockType.KEYFRAME_END, 0, 0.0, b"")
        + pack_block(BlockType.CHANGES, 0, 0.0, line)
    )
    with pytest.raises(RecordingError):
        Recording(path)


def test_a_block_of_the_far_future_is_no_block(tmp_path: Path) -> None:
    header = msgspec.json.encode({"name": "x", "start": NOW})
    path = tmp_path / "far.bpr"
    kept = (
        MAGIC
        + pack_block(BlockType.HEADER, 0, 0.0, header)
        + pack_block(BlockType.KEYFRAME_END, 0, 0.0, b"")
    )
    far = pack_block(BlockType.KEYFRAME_END, 0, 9e11, b"")
    path.write_bytes(kept + far)
    with Recording(path) as found:
        assert found.truncated_bytes == len(far)
        assert found.end == found.start
