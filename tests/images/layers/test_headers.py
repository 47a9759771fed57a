"""Headers that say more than they are: sparse files, globals, chains, and names without end."""

import io
import struct
import subprocess
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.images.layers.headers import parse_records
from bayplan.images.layers.streams import UnpackLimits
from bayplan.images.registry.errors import IntegrityError
from tests.images.layers.test_unpack import LayerStack, stack
from tests.images.parts.layouts import directory, tar_of

__all__ = ["stack"]
MIB = 1024**2
SMALL = UnpackLimits(ratio=10, ratio_floor=MIB)


def header(name: str, kind: bytes, body: bytes = b"") -> bytes:
    """A member with its body, padded."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(body)
    return info.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % 512)


def record(keyword: str, value: str) -> bytes:
    """One record of an extended header, with its own length before it."""
    rest = f" {keyword}={value}\n".encode()
    length = len(rest) + 1
    while len(str(length)) + len(rest) != length:
        length = len(str(length)) + len(rest)
    return str(length).encode() + rest


def extended(*records: tuple[str, str], kind: bytes = tarfile.XHDTYPE) -> bytes:
    return header("pax", kind, b"".join(record(*one) for one in records))


def checksummed(block: bytearray) -> bytes:
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def gnu_sparse(size: int, *, more: bool = False) -> bytes:
    """A header of GNU's old form: a file of one hole."""
    block = bytearray(tarfile.TarInfo("hole").tobuf(tarfile.GNU_FORMAT))
    block[156:157] = tarfile.GNUTYPE_SPARSE
    block[386:410] = b"%011o\0%011o\0" % (size, 0)
    block[482] = more
    block[483:495] = b"%011o\0" % size
    return checksummed(block)


def test_a_hole_counts_towards_what_a_layer_expands_to(stack: LayerStack) -> None:
    bomb = gnu_sparse(42_000_000) + bytes(1024)
    with pytest.raises(IntegrityError, match="expands to more"):
        stack.add(bomb, SMALL)


@pytest.mark.parametrize(
    "records",
    [
        [("GNU.sparse.map", "42000000,0"), ("GNU.sparse.size", "42000000")],
        [
            ("GNU.sparse.size", "42000000"),
            ("GNU.sparse.offset", "42000000"),
            ("GNU.sparse.numbytes", "0"),
        ],
    ],
)
def test_a_hole_of_an_extended_header_counts_as_well(
    stack: LayerStack, records: list[tuple[str, str]]
) -> None:
    with pytest.raises(IntegrityError, match="expands to more"):
        stack.add(extended(*records) + header("f", tarfile.REGTYPE) + bytes(1024), SMALL)


def test_a_hole_stays_a_hole(stack: LayerStack) -> None:
    stack.add(gnu_sparse(42_000_000) + bytes(1024))
    status = stack.path("hole").stat()
    assert (status.st_size, status.st_blocks) == (42_000_000, 0)


@pytest.mark.parametrize("form", ["gnu", "0.0", "0.1", "1.0"])
def test_sparse_files_of_the_real_tar_arrive_as_they_were(
    stack: LayerStack, tmp_path: Path, form: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with (source / "holes").open("wb") as file:
        for number in range(40):
            file.seek(number * 200_000)
            file.write(f"piece {number}".encode() * 1000)
        file.truncate(9_000_000)
    (source / "after").write_bytes(b"whole")
    options = ["--format=gnu"] if form == "gnu" else ["--format=posix", f"--sparse-version={form}"]
    command = ["tar", "-S", *options, "-C", str(source), "-c", "holes", "after"]
    stack.add(subprocess.run(command, check=True, capture_output=True).stdout)
    assert stack.path("holes").read_bytes() == (source / "holes").read_bytes()
    assert stack.path("after").read_bytes() == b"whole"


@pytest.mark.parametrize(
    "map_",
    ["5,10,2,1", "0,99", "1", "a,b", "0," + "9" * 30, "-5,1", "0,5,3,4", "٣,0"],
)
def test_an_impossible_map_is_refused(stack: LayerStack, map_: str) -> None:
    records = extended(("GNU.sparse.map", map_), ("GNU.sparse.size", "50"))
    with pytest.raises(IntegrityError, match="sparse"):
        stack.add(records + header("f", tarfile.REGTYPE, b"x" * 20) + bytes(1024))


@pytest.mark.parametrize("body", [b"", b"7", b"9" * 600, b"1000000\n" + b"1\n" * 100, b"x\n1\n2\n"])
def test_a_map_before_the_data_that_cannot_be_read_is_refused(
    stack: LayerStack, body: bytes
) -> None:
    records = extended(("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"))
    with pytest.raises(IntegrityError):
        stack.add(records + header("f", tarfile.REGTYPE, body))


def test_a_sparse_header_that_is_cut_is_refused(stack: LayerStack) -> None:
    with pytest.raises(IntegrityError):
        stack.add(gnu_sparse(10, more=True))


def peak_of(stack: LayerStack, layer: bytes) -> int:
    """How much memory unpacking a layer takes at most."""
    tracemalloc.start()
    try:
        stack.add(layer)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_global_headers_take_no_memory_and_say_nothing(stack: LayerStack) -> None:
    def globals_of(number: int) -> bytes:
        return extended((f"k{number}", "x" * 900_000), ("mtime", "77"), kind=tarfile.XGLTYPE)

    members = [globals_of(n) + header(f"f{n}", tarfile.REGTYPE) for n in range(64)]
    layer = b"".join(members) + bytes(1024)
    assert peak_of(stack, layer) < 16 * MIB
    assert stack.path("f5").stat().st_mtime != 77


def test_what_directories_say_takes_no_memory(stack: LayerStack) -> None:
    members = []
    for number in range(64):
        attributes = extended(("comment", "x" * 450_000), ("SCHILY.xattr.user.a", "y" * 450_000))
        members.append(attributes + header(f"d{number}/", tarfile.DIRTYPE))
    assert peak_of(stack, b"".join(members) + bytes(1024)) < 16 * MIB


@pytest.mark.parametrize("kind", [tarfile.XGLTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_headers_upon_headers_are_refused(stack: LayerStack, kind: bytes) -> None:
    body = record("comment", "x") if kind != tarfile.GNUTYPE_LONGNAME else b"name\0"
    chain = header("h", kind, body) * 900
    with pytest.raises(IntegrityError, match="headers"):
        stack.add(chain + header("f", tarfile.REGTYPE) + bytes(1024))


def test_a_megabyte_of_digits_is_read_at_once(stack: LayerStack) -> None:
    with pytest.raises(IntegrityError, match="extended header"):
        stack.add(header("pax", tarfile.XHDTYPE, b"1" * 900_000) + bytes(1024))


@pytest.mark.parametrize(
    "body",
    [b"5 a=\n", b"0 a=b\n", b"99 a=b\n", b"6 a=b", b"6 ab \n", b" 6 a=b\n", b"-6 a=b\n", b"6a=b\n"],
)
def test_a_record_of_another_length_than_it_says_is_refused(body: bytes) -> None:
    if body == b"5 a=\n":
        assert parse_records(body) == []
        return
    with pytest.raises(IntegrityError):
        parse_records(body)


@given(st.dictionaries(st.sampled_from(["path", "linkpath", "mtime"]), st.text(max_size=50)))
def test_records_are_read_as_they_were_written(records: dict[str, str]) -> None:
    body = b"".join(record(*one) for one in records.items())
    assert dict(parse_records(body)) == records


@given(st.binary(max_size=200))
def test_no_header_does_worse_than_being_refused(body: bytes) -> None:
    try:
        parse_records(body)
    except IntegrityError:
        return


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("size", "-512"),
        ("size", "many"),
        ("size", "9" * 5000),
        ("mtime", "nan"),
        ("mtime", "1e999"),
        ("uid", str(1 << 70)),
    ],
)
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE])
def test_impossible_numbers_are_refused(
    stack: LayerStack, keyword: str, value: str, kind: bytes
) -> None:
    name = "f/" if kind == tarfile.DIRTYPE else "f"
    with pytest.raises(IntegrityError):
        stack.add(extended((keyword, value)) + header(name, kind) + bytes(1024))


def test_directories_that_names_imply_count_as_entries(stack: LayerStack) -> None:
    deep = [(f"{n}/" + "d/" * 100 + "f", b"") for n in range(5)]
    with pytest.raises(IntegrityError, match="entries"):
        stack.add(tar_of(*deep), UnpackLimits(entries=200))


def test_names_have_a_bound_together(stack: LayerStack) -> None:
    names = [("/".join(["n" * 200] * 10) + str(n), b"") for n in range(10)]
    with pytest.raises(IntegrityError, match="names"):
        stack.add(tar_of(*names), UnpackLimits(names=10_000))


def test_capabilities_and_long_names_arrive(stack: LayerStack) -> None:
    buffer = io.BytesIO()
    capability = struct.pack("<IIIII", 0x02000000, 1 << 10, 0, 0, 0).decode("utf-8")
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("d/" + "long" * 60)
        info.pax_headers = {"SCHILY.xattr.user.note": "äö", "SCHILY.xattr.trusted.x": capability}
        info.mtime, info.size = 12.5, 4
        archive.addfile(directory("d"))
        archive.addfile(info, io.BytesIO(b"text"))
    stack.add(buffer.getvalue())
    path = stack.path(info.name)
    assert path.read_bytes() == b"text"
    assert path.stat().st_mtime == 12.5
