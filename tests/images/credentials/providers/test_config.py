"""What an operator says of credential providers is read as the kubelet reads it, or refused."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.base.configfiles import ConfigFileError
from bayplan.images.credentials.providers.config import (
    ProviderConfig,
    load_provider_config,
    matches,
)

V1 = "credentialprovider.kubelet.k8s.io/v1"
GOOD: dict[str, Any] = {
    "name": "ecr",
    "apiVersion": V1,
    "matchImages": ["*.dkr.ecr.*.amazonaws.com", "registry.io:8080/path"],
    "defaultCacheDuration": "12h0m0s",
    "args": ["get-credentials"],
    "env": [{"name": "AWS_PROFILE", "value": "node"}],
}
TOKENS: dict[str, Any] = {
    "serviceAccountTokenAudience": "registry",
    "requireServiceAccount": True,
    "cacheType": "ServiceAccount",
}


def write(folder: Path, *providers: dict[str, Any], name: str = "config.yaml", **top: Any) -> Path:
    whole = {
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": list(providers),
        **top,
    }
    path = folder / name
    path.write_text(yaml.safe_dump(whole))
    return path


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("ecr", "gcr"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (folder / "text").write_text("no program")
    return folder


def load(path: Path, programs: Path) -> ProviderConfig:
    return load_provider_config(path, programs)


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_every_version_is_read(tmp_path: Path, programs: Path, version: str) -> None:
    path = write(tmp_path, GOOD, apiVersion=f"kubelet.config.k8s.io/{version}")
    config = load(path, programs)
    (provider,) = config.providers
    assert (provider.name, provider.cache_seconds) == ("ecr", 43200)
    content = path.read_bytes()
    prefixed = len(content).to_bytes(8, "big") + content
    assert config.hash == f"sha256:{hashlib.sha256(prefixed).hexdigest()}"


def test_a_directory_is_read_in_the_order_of_its_names(tmp_path: Path, programs: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    write(folder, {**GOOD, "name": "gcr"}, name="10.yml")
    write(folder, GOOD, name="05.json")
    (folder / "notes.txt").write_text("not a configuration")
    assert [one.name for one in load(folder, programs).providers] == ["ecr", "gcr"]
    write(folder, GOOD, name="20.yaml")
    with pytest.raises(ConfigFileError, match=r"20\.yaml:.*name: 'ecr' is there twice"):
        load(folder, programs)


def test_a_directory_of_nothing_is_refused(tmp_path: Path, programs: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.raises(ConfigFileError, match=r"no \.json, \.yaml or \.yml"):
        load(folder, programs)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "a/b"}, "providers[0].name: 'a/b' is not the name of a program"),
        ({"name": ".."}, "providers[0].name"),
        ({"name": "a b"}, "providers[0].name"),
        ({"name": "absent"}, "providers[0].name: there is no program"),
        ({"name": "text"}, "providers[0].name"),
        ({"apiVersion": "v1"}, "providers[0].apiVersion: 'v1' is not one of"),
        ({"matchImages": []}, "providers[0].matchImages: at least one"),
        ({"matchImages": ["ok", "https://x"]}, "providers[0].matchImages[1]"),
        ({"matchImages": ["a b"]}, "providers[0].matchImages[0]"),
        ({"matchImages": ["host:port"]}, "providers[0].matchImages[0]"),
        ({"matchImages": ["%zz"]}, "providers[0].matchImages[0]"),
        ({"defaultCacheDuration": None}, "providers[0].defaultCacheDuration: must be given"),
        ({"defaultCacheDuration": "-1s"}, "providers[0].defaultCacheDuration"),
        ({"defaultCacheDuration": "soon"}, "providers[0].defaultCacheDuration"),
        ({"env": [{"name": "A=B", "value": ""}]}, "providers[0].env[0].name"),
        ({"matchImage": ["x"]}, "providers[0].matchImage: unknown field"),
        ({"args": "one"}, "providers[0].args"),
        ({"tokenAttributes": {}}, "tokenAttributes.serviceAccountTokenAudience: must be given"),
        (
            {"tokenAttributes": TOKENS, "apiVersion": f"{V1}beta1"},
            "providers[0].tokenAttributes: only",
        ),
        ({"tokenAttributes": {**TOKENS, "cacheType": "Pod"}}, "tokenAttributes.cacheType: 'Pod'"),
        (
            {"tokenAttributes": {**TOKENS, "requireServiceAccount": None}},
            "tokenAttributes.requireServiceAccount: must be given",
        ),
        (
            {
                "tokenAttributes": {
                    **TOKENS,
                    "requireServiceAccount": False,
                    "requiredServiceAccountAnnotationKeys": ["a/b"],
                }
            },
            "requiredServiceAccountAnnotationKeys: requireServiceAccount cannot be false",
        ),
        (
            {"tokenAttributes": {**TOKENS, "requiredServiceAccountAnnotationKeys": ["a b"]}},
            "requiredServiceAccountAnnotationKeys[0]: 'a b' cannot be the key",
        ),
        (
            {"tokenAttributes": {**TOKENS, "optionalServiceAccountAnnotationKeys": ["a", "a"]}},
            "optionalServiceAccountAnnotationKeys[1]: 'a' is there twice",
        ),
        (
            {
                "tokenAttributes": {
                    **TOKENS,
                    "requiredServiceAccountAnnotationKeys": ["a"],
                    "optionalServiceAccountAnnotationKeys": ["a"],
                }
            },
            "tokenAttributes: a: an annotation cannot be both",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_and_field(
    tmp_path: Path, programs: Path, change: dict[str, Any], said: str
) -> None:
    path = write(tmp_path, {**GOOD, **change})
    with pytest.raises(ConfigFileError) as failure:
        load(path, programs)
    assert said in str(failure.value)
    assert str(failure.value).startswith(f"{path}:")


@pytest.mark.parametrize(
    ("top", "said"),
    [
        ({"kind": "Config"}, "kind: 'Config' is not CredentialProviderConfig"),
        ({"apiVersion": "v1"}, "apiVersion: 'v1' is not one of"),
        ({"providers": []}, "providers: at least one provider is needed"),
        ({"provider": []}, "unknown field"),
    ],
)
def test_a_file_of_something_else_is_refused(
    tmp_path: Path, programs: Path, top: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigFileError) as failure:
        load(write(tmp_path, GOOD, **top), programs)
    assert said in str(failure.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, programs: Path) -> None:
    with pytest.raises(ConfigFileError, match="No such file"):
        load(tmp_path / "nothing.yaml", programs)


@pytest.mark.parametrize(
    ("pattern", "image", "fits"),
    [
        ("gcr.io", "gcr.io/team/app", True),
        ("gcr.io", "eu.gcr.io/team/app", False),
        ("*.gcr.io", "eu.gcr.io/team/app", True),
        ("*.gcr.io", "gcr.io/app", False),
        ("*.io", "eu.gcr.io/app", False),
        ("*.*.registry.io", "a.b.registry.io/app", True),
        ("app*.k8s.io", "app7.k8s.io/x", True),
        ("k8s.*.io", "k8s.eu.io/x", True),
        ("k8s.*", "k8s.io/x", True),
        ("registry.io:8080/path", "registry.io:8080/path/app", True),
        ("registry.io:8080/path", "registry.io:8080/pathological", True),
        ("registry.io:8080/path", "registry.io:8080/other", False),
        ("registry.io:8080", "registry.io/app", False),
        ("registry.io", "registry.io:8080/app", False),
        ("docker.io", "docker.io/library/busybox", True),
        ("[::1]:5000", "[::1]:5000/app", True),
    ],
)
def test_patterns_fit_as_the_kubelets_do(pattern: str, image: str, fits: bool) -> None:
    assert matches(pattern, image) is fits
