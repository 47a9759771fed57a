"""Layers onto directories: whiteouts, links, and every trick an archive can try."""

import io
import stat
import tarfile
import threading
from pathlib import Path

import pytest
import zstandard

from bayplan.images.layers.streams import UnpackLimits, chain_ids
from bayplan.images.layers.unpack import LayerJob, StoreUsage, unpack
from bayplan.images.registry.errors import IntegrityError
from tests.images.parts.layouts import digest_of, directory, entry, gzipped, tar_of

LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE


class LayerStack:
    """Layers applied one on another."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top: Path | None = None
        self.count = 0

    def add(
        self, layer: bytes, limits: UnpackLimits | None = None, stored: bytes | None = None
    ) -> StoreUsage:
        self.count += 1
        blob, target = self.root / f"blob-{self.count}", self.root / f"chain-{self.count}"
        blob.write_bytes(gzipped(layer) if stored is None else stored)
        target.mkdir()
        job = LayerJob(blob, digest_of(layer), self.top, target, limits or UnpackLimits())
        usage = unpack(job, threading.Event())
        self.top = target
        return usage

    def path(self, name: str) -> Path:
        assert self.top is not None
        return self.top / name

    def names(self) -> set[str]:
        assert self.top is not None
        return {str(path.relative_to(self.top)) for path in self.top.rglob("*")}


@pytest.fixture
def stack(tmp_path: Path) -> LayerStack:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("untouched")
    (tmp_path / "layers").mkdir()
    return LayerStack(tmp_path / "layers")


def untouched(stack: LayerStack) -> bool:
    outside = stack.root.parent / "outside"
    names = [path.name for path in outside.iterdir()]
    return names == ["precious"] and (outside / "precious").read_text() == "untouched"


def test_files_directories_and_links_arrive_with_their_modes(stack: LayerStack) -> None:
    stack.add(
        tar_of(
            directory("etc", 0o750),
            ("etc/conf", b"text"),
            entry("etc/link", LINK, "conf"),
            entry("etc/hard", HARD, "etc/conf"),
            entry("pipe", tarfile.FIFOTYPE, mode=0o600),
        )
    )
    assert stack.names() == {"etc", "etc/conf", "etc/link", "etc/hard", "pipe"}
    assert stack.path("etc/conf").read_bytes() == b"text"
    assert stack.path("etc/hard").stat().st_ino == stack.path("etc/conf").stat().st_ino
    assert stat.S_IMODE(stack.path("etc").stat().st_mode) == 0o750
    assert stack.path("etc/link").readlink() == Path("conf")


@pytest.mark.parametrize("compress", [gzipped, bytes, zstandard.ZstdCompressor().compress])
def test_every_compression_is_understood(stack: LayerStack, compress: object) -> None:
    layer = tar_of(("file", b"content"))
    assert callable(compress)
    stack.add(layer, stored=compress(layer))
    assert stack.path("file").read_bytes() == b"content"


def test_an_upper_layer_replaces_files_without_touching_the_lower_one(stack: LayerStack) -> None:
    stack.add(tar_of(("file", b"below"), ("same", b"shared")))
    lower = stack.top
    stack.add(tar_of(("file", b"above")))
    assert lower is not None
    assert (lower / "file").read_bytes() == b"below"
    assert stack.path("file").read_bytes() == b"above"
    assert stack.path("same").stat().st_ino == (lower / "same").stat().st_ino


def test_a_whiteout_takes_away_what_is_below(stack: LayerStack) -> None:
    stack.add(tar_of(("a/x", b""), ("a/y/z", b""), ("b", b"")))
    stack.add(tar_of(("a/.wh.x", b""), ("a/.wh.y", b""), (".wh.nothing", b""), ("c/.wh.d", b"")))
    assert stack.names() == {"a", "b"}


@pytest.mark.parametrize("opaque_first", [True, False])
def test_an_opaque_directory_keeps_only_what_its_own_layer_brings(
    stack: LayerStack, opaque_first: bool
) -> None:
    stack.add(tar_of(("d/old", b""), ("d/sub/old", b"")))
    opaque, new = ("d/.wh..wh..opq", b""), ("d/sub/new", b"")
    stack.add(tar_of(*((opaque, new) if opaque_first else (new, opaque))))
    assert stack.names() == {"d", "d/sub", "d/sub/new"}


def test_a_whiteout_spares_what_its_own_layer_brings(stack: LayerStack) -> None:
    stack.add(tar_of(("f", b"old")))
    stack.add(tar_of(("f", b"new"), (".wh.f", b"")))
    assert stack.path("f").read_bytes() == b"new"


def test_a_file_replaces_a_directory_and_the_other_way_round(stack: LayerStack) -> None:
    stack.add(tar_of(("a/b", b""), ("c", b"")))
    stack.add(tar_of(("a", b"file")))
    assert stack.path("a").read_bytes() == b"file"
    stack.add(tar_of(directory("c"), ("c/d", b"")))
    assert stack.names() == {"a", "c", "c/d"}


def test_links_on_the_way_are_followed_inside_the_root(stack: LayerStack) -> None:
    stack.add(tar_of(directory("usr/lib"), entry("lib", LINK, "usr/lib")))
    stack.add(tar_of(("lib/one", b"1")))
    stack.add(tar_of(entry("abs", LINK, "/usr"), ("abs/two", b"2")))
    stack.add(tar_of(entry("up", LINK, "../../../usr"), ("up/three", b"3")))
    assert stack.path("usr/lib/one").read_bytes() == b"1"
    assert stack.path("usr/two").read_bytes() == b"2"
    assert stack.path("usr/three").read_bytes() == b"3"


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "a/../b", "/../evil", ".."])
def test_names_that_lead_out_are_refused(stack: LayerStack, name: str) -> None:
    with pytest.raises(IntegrityError, match="leads out"):
        stack.add(tar_of((name, b"evil")))
    assert untouched(stack)


def test_an_absolute_name_lands_inside_the_root(stack: LayerStack) -> None:
    stack.add(tar_of(("/etc/evil", b"tamed")))
    assert stack.path("etc/evil").read_bytes() == b"tamed"


@pytest.mark.parametrize("how", ["absolute", "relative"])
def test_a_link_out_of_the_root_is_no_way_out(stack: LayerStack, how: str) -> None:
    outside = str(stack.root.parent / "outside")
    target = outside if how == "absolute" else "../../outside"
    stack.add(
        tar_of(
            entry("exit", LINK, target),
            ("exit/new", b"evil"),
            ("exit/precious", b"evil"),
            directory("exit/dir", 0o777),
            ("exit/.wh.precious", b""),
            ("exit/.wh..wh..opq", b""),
        )
    )
    assert untouched(stack)


def test_a_link_put_below_later_is_no_way_out_either(stack: LayerStack) -> None:
    outside = str(stack.root.parent / "outside")
    stack.add(tar_of(directory("d"), ("d/f", b"")))
    # The directory is seen, replaced by a link, then used again.
    stack.add(tar_of(("d/g", b""), entry("d", LINK, outside), ("d/precious", b"evil")))
    stack.add(tar_of(directory("e/sub", 0o777), entry("e", LINK, outside)))
    assert untouched(stack)


@pytest.mark.parametrize("target", ["../../outside/precious", "/../outside/precious", "none", "d"])
def test_a_hard_link_to_anything_but_a_file_inside_is_refused(
    stack: LayerStack, target: str
) -> None:
    with pytest.raises(IntegrityError):
        stack.add(tar_of(directory("d"), entry("h", HARD, target)))
    assert untouched(stack)


def test_a_hard_link_through_a_link_out_is_refused(stack: LayerStack) -> None:
    outside = str(stack.root.parent / "outside")
    with pytest.raises(IntegrityError):
        stack.add(tar_of(entry("exit", LINK, outside), entry("h", HARD, "exit/precious")))


def test_a_hard_link_to_a_link_links_the_link(stack: LayerStack) -> None:
    outside = str(stack.root.parent / "outside" / "precious")
    stack.add(tar_of(entry("s", LINK, outside), entry("h", HARD, "s"), ("h", b"replaced")))
    assert untouched(stack)
    assert stack.path("h").read_bytes() == b"replaced"


def test_writing_onto_a_link_replaces_the_link(stack: LayerStack) -> None:
    outside = str(stack.root.parent / "outside" / "precious")
    stack.add(tar_of(entry("f", LINK, outside), ("f", b"mine")))
    assert untouched(stack)
    assert stack.path("f").read_bytes() == b"mine"


def test_a_loop_of_links_is_refused(stack: LayerStack) -> None:
    with pytest.raises(IntegrityError, match="loops"):
        stack.add(tar_of(entry("a", LINK, "b"), entry("b", LINK, "a"), ("a/f", b"")))


def test_an_entry_below_a_file_is_refused(stack: LayerStack) -> None:
    with pytest.raises(IntegrityError, match="which is not a directory"):
        stack.add(tar_of(("f", b""), ("f/g", b"")))


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_device_nodes_are_left_out(stack: LayerStack, kind: bytes) -> None:
    stack.add(tar_of(entry("dev/sda", kind), ("file", b"")))
    assert stack.names() == {"file"}


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh...", "d/.wh..."])
def test_a_whiteout_of_the_directory_itself_is_refused(stack: LayerStack, name: str) -> None:
    with pytest.raises(IntegrityError, match="whiteout"):
        stack.add(tar_of(directory("d"), (name, b"")))
    assert untouched(stack)


def test_a_bomb_stops_at_the_limit(stack: LayerStack) -> None:
    bomb = tar_of(("zeros", bytes(8 * 1024 * 1024)))
    small = UnpackLimits(ratio=10, ratio_floor=1024 * 1024)
    with pytest.raises(IntegrityError, match="expands to more"):
        stack.add(bomb, small)
    with pytest.raises(IntegrityError, match="expands to more"):
        stack.add(bomb, small, stored=zstandard.ZstdCompressor().compress(bomb))
    with pytest.raises(IntegrityError, match="entries"):
        stack.add(tar_of(*((f"f{n}", b"") for n in range(20))), UnpackLimits(entries=10))


def test_a_sparse_file_counts_in_full(stack: LayerStack) -> None:
    info = tarfile.TarInfo("sparse")
    info.size = 1 << 60
    with pytest.raises(IntegrityError, match="size"):
        stack.add(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))


def test_headers_without_end_are_refused(stack: LayerStack) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("f")
        info.pax_headers = {"SCHILY.xattr.user.big": "x" * (2 * 1024 * 1024)}
        archive.addfile(info)
    with pytest.raises(IntegrityError, match="headers"):
        stack.add(buffer.getvalue())


def test_nesting_without_end_is_refused(stack: LayerStack) -> None:
    with pytest.raises(IntegrityError, match="nests"):
        stack.add(tar_of(("a/" * 400 + "f", b"")))
    deeper = [directory("a/" * 200)]
    links = [entry(f"l{n}", LINK, "a/" * 200) for n in range(1)]
    with pytest.raises(IntegrityError, match="nests"):
        stack.add(tar_of(*deeper, *links, directory("l0/" + "b/" * 200), ("l0/" + "b/" * 200, b"")))


@pytest.mark.parametrize("cut", [600, 100, 3])
def test_a_cut_archive_is_refused(stack: LayerStack, cut: int) -> None:
    layer = tar_of(("file", b"x" * 5000))
    with pytest.raises(IntegrityError):
        stack.add(layer, stored=gzipped(layer)[:-cut] if cut < 100 else layer[:cut])


def test_the_digest_covers_what_follows_the_archive(stack: LayerStack) -> None:
    layer = tar_of(("file", b"x")) + b"more"
    stack.add(layer)
    with pytest.raises(IntegrityError, match="has the diff id"):
        stack.add(layer, stored=gzipped(layer + b"!"))


def test_unpacking_stops_when_told(tmp_path: Path) -> None:
    layer = tar_of(("file", b"x"))
    (tmp_path / "blob").write_bytes(layer)
    (tmp_path / "target").mkdir()
    stop = threading.Event()
    stop.set()
    job = LayerJob(tmp_path / "blob", digest_of(layer), None, tmp_path / "target")
    with pytest.raises(InterruptedError):
        unpack(job, stop)


class StopsItself(threading.Event):
    """Is set once it has been looked at so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._left = looks

    def is_set(self) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize(
    "blob",
    [
        b"\x1f\x8b\x08\x08" + bytes(6) + b"endless name" * 1000,
        gzipped(b"") * 1000,
        gzipped(b"x") + bytes(100_000),
        zstandard.ZstdCompressor().compress(b"") * 100_000,
    ],
)
def test_a_blob_that_expands_to_nothing_can_be_stopped_as_well(tmp_path: Path, blob: bytes) -> None:
    (tmp_path / "blob").write_bytes(blob)
    (tmp_path / "target").mkdir()
    job = LayerJob(tmp_path / "blob", digest_of(b""), None, tmp_path / "target")
    with pytest.raises(InterruptedError):
        unpack(job, StopsItself(4))


def test_a_window_larger_than_is_borne_is_refused(stack: LayerStack) -> None:
    # A frame that says it needs a window of 2 GiB, and a raw block.
    frame = b"\x28\xb5\x2f\xfd" + bytes([0x00, (31 - 10) << 3]) + b"\x09\x00\x00x"
    with pytest.raises(IntegrityError, match="decompressed"):
        stack.add(b"x", stored=frame)


def test_the_usages_of_all_chains_add_up_to_the_disks(stack: LayerStack) -> None:
    used = stack.add(tar_of(("a", b"x" * 9000), ("d/b", b"y" * 100), entry("h", HARD, "a")))
    used += stack.add(tar_of(("a", b"z" * 20000), ("d/.wh.b", b""), entry("h2", HARD, "a")))
    used += stack.add(tar_of(("c", b"")))
    seen: set[int] = set()
    total = StoreUsage()
    for number in range(1, 4):
        chain = stack.root / f"chain-{number}"
        for path in (chain, *chain.rglob("*")):
            status = path.lstat()
            if status.st_ino not in seen:
                seen.add(status.st_ino)
                total += StoreUsage(status.st_blocks * 512, 1)
    assert used == total


def test_chain_ids_are_those_of_the_image_spec() -> None:
    layers = (digest_of(b"1"), digest_of(b"2"), digest_of(b"3"))
    first, second, third = chain_ids(layers)
    assert first == layers[0]
    assert second == digest_of(f"{first} {layers[1]}".encode())
    assert third == digest_of(f"{second} {layers[2]}".encode())
    assert chain_ids(()) == []
