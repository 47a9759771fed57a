"""Whatever a crash leaves behind is swept at the next start."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.images.store.store import ImageStore


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["file", "tree", "blob", "chain"]), max_size=6))
def test_whatever_a_crash_leaves_is_swept_at_the_start(litter: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        ImageStore(root).close()
        for number, kind in enumerate(litter):
            leave(root, kind, number)
        store = ImageStore(root)
        try:
            for place in ("ingest", "blobs", "chains"):
                assert list((root / place).iterdir()) == []
        finally:
            store.close()


def leave(root: Path, kind: str, number: int) -> None:
    digest = f"sha256-{number:064x}"
    if kind == "file":
        (root / "ingest" / str(number)).write_bytes(b"half")
    elif kind == "tree":
        (root / "ingest" / str(number) / "deep").mkdir(parents=True)
    elif kind == "blob":
        (root / "blobs" / digest).write_bytes(b"whole")
    else:
        (root / "chains" / digest / "etc").mkdir(parents=True)
