"""References are read as every runtime reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.poddefaults import default_pod_spec
from bayplan.images.manager.image_request import effective_policy
from bayplan.images.registry.errors import image_to_pull
from bayplan.kube.imagereferences import (
    InvalidReferenceError,
    image_id,
    parse_image,
    with_default_tag,
    without_tag_or_digest,
)

DIGEST = "sha256:" + "ab" * 32
HUB = "docker.io"
OFFICIAL = "docker.io/library"


@pytest.mark.parametrize(
    ("written", "normal", "pulled", "pull_policy"),
    [
        ("busybox", f"{OFFICIAL}/busybox", f"{OFFICIAL}/busybox:latest", "Always"),
        ("busybox:latest", f"{OFFICIAL}/busybox:latest", f"{OFFICIAL}/busybox:latest", "Always"),
        ("busybox:1.35", f"{OFFICIAL}/busybox:1.35", f"{OFFICIAL}/busybox:1.35", "IfNotPresent"),
        ("team/app", f"{HUB}/team/app", f"{HUB}/team/app:latest", "Always"),
        ("docker.io/busybox", f"{OFFICIAL}/busybox", f"{OFFICIAL}/busybox:latest", "Always"),
        ("index.docker.io/busybox", f"{OFFICIAL}/busybox", f"{OFFICIAL}/busybox:latest", "Always"),
        ("localhost/app", "localhost/app", "localhost/app:latest", "Always"),
        ("localhost:5000/a/b:v1", "localhost:5000/a/b:v1", "localhost:5000/a/b:v1", "IfNotPresent"),
        ("quay.io/a__b/c-d.e:T_1.2", *["quay.io/a__b/c-d.e:T_1.2"] * 2, "IfNotPresent"),
        ("[::1]:5000/app", "[::1]:5000/app", "[::1]:5000/app:latest", "Always"),
        (f"busybox@{DIGEST}", *[f"{OFFICIAL}/busybox@{DIGEST}"] * 2, "IfNotPresent"),
        (f"quay.io/x@{DIGEST}", f"quay.io/x@{DIGEST}", f"quay.io/x@{DIGEST}", "IfNotPresent"),
        (f"quay.io/x:1@{DIGEST}", f"quay.io/x:1@{DIGEST}", f"quay.io/x@{DIGEST}", "IfNotPresent"),
        (f"x.io/x:latest@{DIGEST}", f"x.io/x:latest@{DIGEST}", f"x.io/x@{DIGEST}", "Always"),
        ("HOST.example/app", "HOST.example/app", "HOST.example/app:latest", "Always"),
        # No path has capitals, so what has them is a registry.
        ("Team/app", "Team/app", "Team/app:latest", "Always"),
    ],
)
def test_a_reference_is_read_the_same_by_all_who_read_it(
    written: str, normal: str, pulled: str, pull_policy: str
) -> None:
    reference = parse_image(written)
    assert str(reference) == normal
    assert str(reference.to_pull()) == pulled
    assert image_to_pull(written) == image_to_pull(pulled) == reference.to_pull()
    assert effective_policy("", written) == pull_policy
    assert defaulted_policy(written) == pull_policy


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "must not be empty"),
        ("Busybox", "must be lower case"),
        ("registry.example/Team/app", "must be lower case"),
        ("a//b", "not an image reference"),
        ("a:b:c", "not an image reference"),
        ("a:-tag", "not an image reference"),
        ("a@sha256:1234", "not an image reference"),
        ("a@sha256:" + "0" * 63, "not a sha256"),
        ("a@md5:" + "0" * 32, "not a sha256"),
        ("ab" * 32, "image ID cannot be pulled"),
        ("x/" + "a" * 300, "longer than 255"),
        ("a" * 300, "longer than 255"),
        ("https://registry.example/app", "not an image reference"),
        ("app\n", "not an image reference"),
        *((odd, "not an image reference") for odd in ("a b", "a:", "a@", "a@sha256:1", "-a")),
        *((odd, "not an image reference") for odd in ("a:t@md5:1", "a/", "/a", "http://a/b")),
        *((odd, "not an image reference") for odd in ("a/../b", "x.y:port/z")),
        (f"a@{DIGEST}@{DIGEST}", "not an image reference"),
    ],
)
def test_what_is_no_reference_is_refused_with_the_reason(written: str, why: str) -> None:
    with pytest.raises(InvalidReferenceError, match=why):
        parse_image(written)
    assert defaulted_policy(written) == "IfNotPresent"


def defaulted_policy(image: str) -> object:
    """The pull policy that the API server gives a container of the image."""
    spec: JsonObject = {"containers": [{"name": "one", "image": image}]}
    default_pod_spec(spec)
    return spec["containers"][0]["imagePullPolicy"]


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
    assert parse_image("docker.io/library/busybox").familiar_repository == "busybox"
    assert parse_image("docker.io/team/app").familiar_repository == "team/app"
    assert parse_image("quay.io/team/app").familiar_repository == "quay.io/team/app"


def test_an_image_id_is_recognised_with_and_without_its_algorithm() -> None:
    assert image_id(DIGEST) == DIGEST
    assert image_id("ab" * 32) == DIGEST
    assert image_id("busybox") is None


@given(st.text(max_size=80))
def test_any_text_is_a_reference_or_a_clear_error(text: str) -> None:
    try:
        reference = parse_image(text)
    except InvalidReferenceError:
        return
    assert parse_image(str(reference)) == reference


@given(st.from_regex(r"[a-z0-9]{1,8}(/[a-z0-9]{1,8}){0,2}(:[a-z0-9]{1,8})?", fullmatch=True))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = parse_image(text).with_default_tag()
    assert parse_image(str(once)).with_default_tag() == once
    assert parse_image(with_default_tag(text)) == once
