"""A store looked into from outside, while its process runs or after it was killed.

What an image should be is worked out here from what was pushed, by other code than the service's:
the catalogue's rows, the digests of its files, and the trees that its layers make.
"""

import hashlib
import io
import json
import os
import sqlite3
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.images.parts.layouts import ImageBuilder, digest_of

OWN = {
    "images.db",
    "images.db-wal",
    "images.db-shm",
    "lock",
    "blobs",
    "chains",
    "partial",
    "ingest",
}
Tree = dict[str, str]
"""The digest of every file by its path."""


@dataclass
class Expected:
    """Everything that was pushed: blobs, and the tree of every chain."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    trees: dict[str, Tree] = field(default_factory=dict)

    def add(self, builder: ImageBuilder, layers: list[bytes]) -> None:
        """Take in an image of plain layers, the lowest first."""
        self.blobs.update(builder.blobs)
        chain, tree = "", Tree()
        for layer in layers:
            chain = digest_of(f"{chain} {digest_of(layer)}".encode()) if chain else digest_of(layer)
            tree = {**tree, **files_of(layer)}
            self.trees[chain] = tree


def files_of(layer: bytes) -> Tree:
    """The files of one layer."""
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        contents = {member.name: archive.extractfile(member) for member in archive}
        return {name: digest_of(file.read()) for name, file in contents.items() if file}


@dataclass
class Found:
    """What a store holds."""

    images: set[tuple[str, str]]
    """Image ids with their handlers."""
    partial: int
    partial_bytes: int


def inspect(store: Path, expected: Expected) -> Found:
    """Look at everything; whatever is not whole, not right or not wanted is an error."""
    assert {path.name for path in store.iterdir()} <= OWN
    entries = _rows(store, "SELECT entry FROM entries")
    images = [json.loads(row[0]) for row in entries]
    wanted_blobs = {digest for image in images for digest in image["blobs"]}
    wanted_chains = {chain for image in images for chain in image["chains"]}
    assert _names(store / "blobs") == wanted_blobs
    assert _names(store / "chains") == wanted_chains
    assert list((store / "ingest").iterdir()) == []
    for digest in wanted_blobs:
        assert (store / "blobs" / digest.replace(":", "-")).read_bytes() == expected.blobs[digest]
    for chain in wanted_chains:
        assert tree_of(store / "chains" / chain.replace(":", "-")) == expected.trees[chain]
    assert {row[0] for row in _rows(store, "SELECT digest FROM sources")} == wanted_blobs
    assert {row[0] for row in _rows(store, "SELECT chain_id FROM chains")} == wanted_chains
    sizes = [_check_partial(path, expected) for path in (store / "partial").iterdir()]
    keys = {(image["image_id"], image["handler"]) for image in images}
    return Found(keys, len(sizes), sum(sizes))


def _check_partial(path: Path, expected: Expected) -> int:
    """What can be continued is the beginning of something that was pushed."""
    data = path.read_bytes()
    digest = path.name.partition(".")[0].replace("-", ":", 1)
    assert expected.blobs[digest].startswith(data)
    return len(data)


def tree_of(root: Path) -> Tree:
    """Every file of an unpacked chain."""
    found = Tree()
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory) / name
            found[str(path.relative_to(root))] = (
                f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
            )
    return found


def occupied(store: Path) -> tuple[int, int]:
    """What `du` says of a directory: bytes and inodes, each file once."""
    seen: dict[int, int] = {}
    for path in (store, *store.rglob("*")):
        status = path.lstat()
        seen[status.st_ino] = status.st_blocks * 512
    return sum(seen.values()), len(seen)


def _names(directory: Path) -> set[str]:
    return {path.name.replace("-", ":", 1) for path in directory.iterdir()}


def _rows(store: Path, query: str) -> list[tuple[bytes | str, ...]]:
    database = sqlite3.connect(f"file:{store / 'images.db'}?mode=ro", uri=True)
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()
