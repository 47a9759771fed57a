"""Protobuf bodies are read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.schema import protobuf
from bayplan.embedded.apiserver.schema.types import require_type

POD = require_type("core.Pod")


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def part(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    meta = part(1, api_version.encode()) + part(2, kind.encode())
    return protobuf.MAGIC + part(1, meta) + part(2, raw)


def test_protobuf_becomes_the_json_that_it_stands_for() -> None:
    label = part(1, b"app") + part(2, b"web")
    meta = part(1, b"a") + part(11, label) + part(8, part(1, 1_700_000_000))
    quantity = part(1, b"cpu") + part(2, part(1, b"500m"))
    container = part(1, b"main") + part(2, b"img") + part(8, part(2, quantity))
    volume = part(1, b"v") + part(2, part(2, b""))
    spec = part(2, container) + part(1, volume) + part(4, -1)
    body = envelope("v1", "Pod", part(1, meta) + part(2, spec))
    api_version, kind, raw = protobuf.open_envelope(body)
    assert (api_version, kind) == ("v1", "Pod")
    assert protobuf.decode_message(raw, POD) == {
        "metadata": {
            "name": "a",
            "labels": {"app": "web"},
            "creationTimestamp": "2023-11-14T22:13:20Z",
        },
        "spec": {
            "containers": [
                {"name": "main", "image": "img", "resources": {"requests": {"cpu": "500m"}}}
            ],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "terminationGracePeriodSeconds": -1,
        },
    }


@given(st.binary(max_size=80))
def test_no_bytes_confuse_the_protobuf_reader(data: bytes) -> None:
    try:
        protobuf.open_envelope(protobuf.MAGIC + data)
        protobuf.decode_message(data, POD)
    except protobuf.WireError:
        return
