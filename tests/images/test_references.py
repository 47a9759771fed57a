"""References are read as every runtime reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.images.references import (
    InvalidReferenceError,
    image_id,
    parse,
    with_default_tag,
    without_tag_or_digest,
)

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("busybox", "docker.io/library/busybox"),
        ("busybox:1.35", "docker.io/library/busybox:1.35"),
        ("team/app", "docker.io/team/app"),
        ("docker.io/busybox", "docker.io/library/busybox"),
        ("index.docker.io/busybox", "docker.io/library/busybox"),
        ("localhost/app", "localhost/app"),
        ("localhost:5000/a/b:v1", "localhost:5000/a/b:v1"),
        ("registry.example/a__b/c-d:T_1.2", "registry.example/a__b/c-d:T_1.2"),
        ("[::1]:5000/app", "[::1]:5000/app"),
        (f"quay.io/x@{DIGEST}", f"quay.io/x@{DIGEST}"),
        (f"quay.io/x:1@{DIGEST}", f"quay.io/x:1@{DIGEST}"),
        ("HOST.example/app", "HOST.example/app"),
    ],
)
def test_a_reference_is_normalised(written: str, normal: str) -> None:
    assert str(parse(written)) == normal


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "must not be empty"),
        ("Busybox", "must be lower case"),
        ("Team/app", "must be lower case"),
        ("a//b", "not an image reference"),
        ("a:b:c", "not an image reference"),
        ("a:-tag", "not an image reference"),
        ("a@sha256:1234", "not an image reference"),
        ("a@sha256:" + "0" * 63, "not a sha256"),
        ("a@md5:" + "0" * 32, "not a sha256"),
        ("ab" * 32, "id is not a reference"),
        ("x/" + "a" * 300, "longer than 255"),
        ("https://registry.example/app", "not an image reference"),
        ("app\n", "not an image reference"),
    ],
)
def test_what_is_no_reference_is_refused_with_the_reason(written: str, why: str) -> None:
    with pytest.raises(InvalidReferenceError, match=why):
        parse(written)


@pytest.mark.parametrize(
    ("written", "tagged"),
    [
        ("busybox", "busybox:latest"),
        ("busybox:1", "busybox:1"),
        ("localhost:5000/app", "localhost:5000/app:latest"),
        (f"busybox@{DIGEST}", f"busybox@{DIGEST}"),
    ],
)
def test_the_default_tag_is_added_to_the_name_as_written(written: str, tagged: str) -> None:
    assert with_default_tag(written) == tagged


def test_the_record_key_has_no_tag_and_no_digest() -> None:
    assert without_tag_or_digest(f"localhost:5000/app:1@{DIGEST}") == "localhost:5000/app"


def test_familiar_repository_leaves_out_what_goes_without_saying() -> None:
    assert parse("docker.io/library/busybox").familiar_repository == "busybox"
    assert parse("docker.io/team/app").familiar_repository == "team/app"
    assert parse("quay.io/team/app").familiar_repository == "quay.io/team/app"


def test_an_image_id_is_recognised_with_and_without_its_algorithm() -> None:
    assert image_id(DIGEST) == DIGEST
    assert image_id("ab" * 32) == DIGEST
    assert image_id("busybox") is None


@given(st.text(max_size=80))
def test_any_text_is_a_reference_or_a_clear_error(text: str) -> None:
    try:
        reference = parse(text)
    except InvalidReferenceError:
        return
    assert parse(str(reference)) == reference


@given(st.from_regex(r"[a-z0-9]{1,8}(/[a-z0-9]{1,8}){0,2}(:[a-z0-9]{1,8})?", fullmatch=True))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = parse(text).with_default_tag()
    assert parse(str(once)).with_default_tag() == once
    assert parse(with_default_tag(text)) == once
