"""The credentials that fit an image are found, most specific first, and never shown."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from bayplan.images.credentials.keyring import (
    Credential,
    PodKeyring,
    SecretSource,
    credentials_for,
    keyring_of,
    keyring_of_file,
    keyring_of_secret,
)
from bayplan.images.registry.credentials import RegistryCredentials
from bayplan.images.runtime.objects import RegistryAuth
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.secrets import DOCKER_CONFIG_JSON_TYPE, DOCKER_CONFIG_TYPE, Secret


def keyring(*registries: str) -> PodKeyring:
    return keyring_of((registry, RegistryCredentials(username=registry)) for registry in registries)


def users(keyring: PodKeyring, image: str) -> list[str]:
    return [credential.auth.username for credential in credentials_for(keyring, image)]


@pytest.mark.parametrize(
    ("registry", "image", "fits"),
    [
        ("quay.io", "quay.io/team/app", True),
        ("https://quay.io/v1/", "quay.io/team/app", True),
        ("https://quay.io/v2/", "quay.io/team/app:1", True),
        ("quay.io/team", "quay.io/team/app", True),
        ("quay.io/other", "quay.io/team/app", False),
        ("*.example.com", "registry.example.com/app", True),
        ("*.example.com", "a.b.example.com/app", False),
        ("*.example.com", "example.com/app", False),
        ("localhost:5000", "localhost:5000/app", True),
        ("localhost:5001", "localhost:5000/app", False),
        ("localhost", "localhost:5000/app", False),
        ("https://index.docker.io/v1/", "busybox", True),
        ("docker.io", "busybox", True),
        ("https://index.docker.io/v1/", "quay.io/busybox", False),
    ],
)
def test_a_registry_key_fits_by_host_port_and_path(registry: str, image: str, fits: bool) -> None:
    assert bool(credentials_for(keyring(registry), image)) is fits


def test_the_most_specific_credential_is_tried_first() -> None:
    ring = keyring("quay.io", "quay.io/team/app", "quay.io/team")
    assert users(ring, "quay.io/team/app") == ["quay.io/team/app", "quay.io/team", "quay.io"]


def test_credentials_for_one_registry_are_tried_in_the_order_given() -> None:
    ring = PodKeyring()
    for name in ("first", "second"):
        ring += keyring_of([("quay.io", RegistryCredentials(username=name))])
    assert users(ring, "quay.io/app") == ["first", "second"]


def test_a_file_is_read_with_and_without_auth_field(tmp_path: Path) -> None:
    auth = base64.b64encode(b"ann:pa:ss").decode().rstrip("=")
    content = {"auths": {"a.b": {"auth": auth}, "c.d": {"username": "bob", "password": "x"}}}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(content))
    ring = keyring_of_file(file)
    assert [each.auth for each in credentials_for(ring, "a.b/app")] == [
        RegistryAuth("ann", "pa:ss")
    ]
    assert [each.auth for each in credentials_for(ring, "c.d/app")] == [RegistryAuth("bob", "x")]


def secret(kind: str, key: str, content: bytes) -> Secret:
    meta = ObjectMeta(name="pull", namespace="team", uid="u1")
    return Secret(metadata=meta, type=kind, data={key: content})


def test_both_kinds_of_pull_secret_are_read_and_others_passed_over() -> None:
    entry = b'{"quay.io": {"username": "ann", "password": "hidden"}}'
    legacy = secret(DOCKER_CONFIG_TYPE, ".dockercfg", entry)
    newer = secret(DOCKER_CONFIG_JSON_TYPE, ".dockerconfigjson", b'{"auths": ' + entry + b"}")
    other = secret("Opaque", ".dockercfg", entry)
    ring = keyring_of_secret(legacy) + keyring_of_secret(newer) + keyring_of_secret(other)
    assert [credential.source for credential in credentials_for(ring, "quay.io/app")] == [
        SecretSource("team", "pull", "u1")
    ]


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"r": {"auth": "bm9jb2xvbg=="}}', b"\xff"])
def test_a_broken_secret_is_named_but_not_shown(content: bytes) -> None:
    with pytest.raises(ValueError, match="secret team/pull") as raised:
        keyring_of_secret(secret(DOCKER_CONFIG_TYPE, ".dockercfg", content))
    assert "nocolon" not in str(raised.value)


def test_nothing_secret_shows() -> None:
    auth = RegistryAuth(username="ann", password="hidden", registry_token="hidden")
    shown = repr(
        [
            Credential(auth),
            keyring_of([("quay.io", RegistryCredentials(username="ann", password="hidden"))]),
        ]
    )
    shown += repr(secret("Opaque", "key", b"hidden"))
    assert "hidden" not in shown
    assert "ann" not in shown


def test_the_fingerprint_is_the_kubelets() -> None:
    # The sha256 of {"username":"ann","password":"a\u003cb"}, as Go writes it.
    credential = Credential(RegistryAuth(username="ann", password="a<b"))
    assert credential.hash == ("56226c9ba7b0c835619a430dc4f0fea7d736a2059e1b7688c8b07ee99e73e4c7")
