"""Any history of pulls and removals: what is kept is what is needed, before and after a restart."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bayplan.images.layers.unpack import StoreUsage
from bayplan.images.platforms import Platform
from bayplan.images.registry.manifests import OCI_CONFIG, Descriptor
from bayplan.images.store.database import StoredImage, StoredImageKey
from bayplan.images.store.store import ImageStore
from tests.images.parts.layouts import digest_of

pytestmark = pytest.mark.whole


HANDLERS = st.sampled_from(["runc", "kata"])
IMAGES = st.integers(0, 4)
TAGS = st.sampled_from(["a", "b", "c"])


def blobs_of(image: int) -> list[bytes]:
    """An image's content: its own, and what it shares with its neighbour."""
    return [f"own {image}".encode(), f"shared {image // 2}".encode()]


class Histories(RuleBasedStateMachine):
    """A store, beside the simplest model of one."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self._root = Path(self._directory.name)
        self._loop = asyncio.new_event_loop()
        self._store = ImageStore(self._root)
        self._names: dict[tuple[str, str], int] = {}
        self._entries: set[tuple[str, int]] = set()

    def teardown(self) -> None:
        self._store.close()
        self._loop.close()
        self._directory.cleanup()

    @rule(handler=HANDLERS, image=IMAGES, tag=TAGS)
    def pull(self, handler: str, image: int, tag: str) -> None:
        self._loop.run_until_complete(self._pull(handler, image, tag))
        self._names[handler, tag] = image
        self._entries.add((handler, image))

    async def _pull(self, handler: str, image: int, tag: str) -> None:
        digests = []
        for data in blobs_of(image):
            digests.append(digest_of(data))
            self._store.content.put(Descriptor(OCI_CONFIG, digests[-1], len(data)), data)
            if not self._store.snapshots.has(digests[-1]):
                scratch = self._store.layout.scratch()
                scratch.mkdir()
                self._store.snapshots.keep(scratch, digests[-1], StoreUsage(0, 1))
        names = (f"registry.example/image:{tag}",)
        content = tuple(digests)
        platform = Platform(os="linux", architecture="amd64")
        await self._store.add(
            StoredImage(handler, digests[0], digests[0], 1, "", platform, names, content, content)
        )

    @rule(handler=HANDLERS, image=IMAGES)
    def remove(self, handler: str, image: int) -> None:
        key = StoredImageKey(handler, digest_of(blobs_of(image)[0]))
        removed = self._loop.run_until_complete(self._store.remove(key))
        assert removed == ((handler, image) in self._entries)
        self._entries.discard((handler, image))
        self._names = {
            name: owner
            for name, owner in self._names.items()
            if (name[0], owner) != (handler, image)
        }

    @rule()
    def restart(self) -> None:
        self._store.close()
        self._store = ImageStore(self._root)

    @rule(image=IMAGES)
    def lose_content(self, image: int) -> None:
        """A disk that forgets a blob takes the images that need it, and nothing else."""
        victim = digest_of(blobs_of(image)[0])
        self._store.content.path(victim).unlink(missing_ok=True)
        self.restart()
        self._entries = {entry for entry in self._entries if entry[1] != image}
        self._names = {name: owner for name, owner in self._names.items() if owner != image}

    @invariant()
    def what_is_kept_is_what_is_needed(self) -> None:
        needed = {digest_of(data) for _, image in self._entries for data in blobs_of(image)}
        for place in ("blobs", "chains"):
            kept = {path.name.replace("-", ":", 1) for path in (self._root / place).iterdir()}
            assert kept == needed
        assert list((self._root / "ingest").iterdir()) == []

    @invariant()
    def every_name_finds_the_image_that_had_it_last(self) -> None:
        for handler in ("runc", "kata"):
            for tag in ("a", "b", "c"):
                found = self._store.catalogue.find(handler, f"registry.example/image:{tag}")
                owner = self._names.get((handler, tag))
                expected = None if owner is None else digest_of(blobs_of(owner)[0])
                assert (found.image_id if found else None) == expected

    @invariant()
    def the_entries_are_those_of_the_model(self) -> None:
        kept = {(entry.handler, entry.image_id) for entry in self._store.catalogue.entries()}
        assert kept == {(handler, digest_of(blobs_of(i)[0])) for handler, i in self._entries}


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
