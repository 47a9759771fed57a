"""Archives made at random, tricks included: nothing leaves the root, and the books balance."""

import contextlib
import hashlib
import tarfile
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.images.layers.unpack import LayerJob, StoreUsage, unpack
from bayplan.images.registry.errors import IntegrityError
from bayplan.images.store.layout import delete
from tests.images.parts.layouts import digest_of, entry, tar_of

pytestmark = pytest.mark.whole


_PART = st.sampled_from(["a", "b", "c", "..", ".", "", ".wh.a", ".wh.b", ".wh..wh..opq"])
_NAME = st.lists(_PART, min_size=1, max_size=4).map("/".join)
_TARGET = st.one_of(_NAME, _NAME.map(lambda name: f"/{name}"), st.just("../../../outside"))
_MEMBER = st.one_of(
    st.tuples(_NAME, st.binary(max_size=20)),
    st.builds(lambda name: entry(name, tarfile.DIRTYPE), _NAME),
    st.builds(lambda name, to: entry(name, tarfile.SYMTYPE, to), _NAME, _TARGET),
    st.builds(lambda name, to: entry(name, tarfile.LNKTYPE, to), _NAME, _TARGET),
    st.builds(lambda name: entry(name, tarfile.CHRTYPE), _NAME),
)
_LAYERS = st.lists(st.lists(_MEMBER, max_size=8), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(_LAYERS)
def test_no_archive_touches_anything_but_its_own_directory(
    layers: list[list[tarfile.TarInfo | tuple[str, bytes]]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        (top / "outside").write_text("untouched")
        work = top / "deep" / "er"
        work.mkdir(parents=True)
        chains: list[Path] = []
        used = StoreUsage()
        for number, members in enumerate(layers):
            before = picture(top)
            layer, chain = tar_of(*members), work / f"chain-{number}"
            (top / "blob").write_bytes(layer)
            chain.mkdir()
            below = chains[-1] if chains else None
            job = LayerJob(top / "blob", digest_of(layer), below, chain)
            with contextlib.suppress(IntegrityError):
                used += unpack(job, threading.Event())
                chains.append(chain)
            if chain not in chains:
                delete(chain)
            after = picture(top)
            assert {path: after[path] for path in before} == before
        assert used == counted(chains)


def picture(top: Path) -> dict[str, str]:
    """Everything but the directories' times, by path."""
    found = {}
    for path in top.rglob("*"):
        if path.name == "blob":
            continue
        status = path.lstat()
        content = path.readlink() if path.is_symlink() else ""
        if path.is_file() and not path.is_symlink():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path)] = f"{status.st_mode} {status.st_uid} {status.st_ino} {content}"
    return found


def counted(chains: list[Path]) -> StoreUsage:
    seen: dict[int, StoreUsage] = {}
    for chain in chains:
        for path in (chain, *chain.rglob("*")):
            status = path.lstat()
            seen[status.st_ino] = StoreUsage(status.st_blocks * 512, 1)
    return sum(seen.values(), StoreUsage())
