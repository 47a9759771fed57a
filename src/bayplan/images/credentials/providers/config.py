"""CredentialProviderConfig as the kubelet reads it: a file, or a directory of files.

A pattern has as many labels in its host as the image, each matched separately (with `*`, `?` and
character classes), the same port or none, and a prefix of the image's path.

    apiVersion: kubelet.config.k8s.io/v1
    kind: CredentialProviderConfig
    providers:
    - name: ecr-credential-provider
      apiVersion: credentialprovider.kubelet.k8s.io/v1
      matchImages: ["*.dkr.ecr.*.amazonaws.com"]
      defaultCacheDuration: 12h

An error has the file, the line and the field.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bayplan.base.configfiles import ConfigDocument, ConfigFileError, FieldProblem, parse, read_text
from bayplan.base.durations import DurationError, parse_duration
from bayplan.kube.configvalues import Section
from bayplan.kube.names import is_qualified_name

_PORT = re.compile(r":([0-9]*)$")
_INVALID = re.compile(r"[\s\x00-\x1f\x7f<>\"\\^`{|}%@?#]")


class RegistryPath(NamedTuple):
    """A registry's host as labels, its port if there is one, and a path with its slash."""

    labels: tuple[str, ...]
    port: str
    path: str


def split_registry_path(text: str) -> RegistryPath:
    """Split a pattern, or an image's name without its tag."""
    host, slash, path = text.partition("/")
    port = _PORT.search(host)
    name = host[: port.start()] if port else host
    return RegistryPath(tuple(name.strip("[]").split(".")), port[1] if port else "", slash + path)


def matches(pattern: str, image: str) -> bool:
    """Return whether a pattern matches an image."""
    wanted, found = split_registry_path(pattern), split_registry_path(image)
    return (
        wanted.port == found.port
        and len(wanted.labels) == len(found.labels)
        and found.path.startswith(wanted.path)
        and all(map(_label_fits, found.labels, wanted.labels))
    )


def _label_fits(label: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(label, pattern.replace("[^", "[!"))


def check_pattern(pattern: str) -> str:
    """Return the problem of a pattern; empty if it is valid."""
    if not pattern or pattern.startswith("/"):
        return f"{pattern!r} names no registry"
    if "://" in pattern:
        return f"{pattern!r}: a pattern has no scheme"
    host = pattern.partition("/")[0]
    bare = host if host.startswith("[") else _PORT.sub("", host)
    if _INVALID.search(pattern) or (":" in bare and not host.startswith("[")):
        return f"{pattern!r} is not of the form host[:port][/path]"
    return ""


TOKEN_VERSION = "credentialprovider.kubelet.k8s.io/v1"  # noqa: S105 - an API's name
PLUGIN_VERSIONS = (
    TOKEN_VERSION,
    "credentialprovider.kubelet.k8s.io/v1beta1",
    "credentialprovider.kubelet.k8s.io/v1alpha1",
)
CACHE_TYPES = ("ServiceAccount", "Token")


class EnvironmentVariable(Section):
    """An environment variable of a plugin."""

    name: str
    """The variable's name."""
    value: str = ""
    """The variable's value."""


class TokenAttributes(Section):
    """The request for a token of the pod's service account."""

    service_account_token_audience: str = ""
    """The audience of the token; required."""
    require_service_account: bool | None = None
    """Whether pods without a service account are skipped; required."""
    cache_type: str = ""
    """How long a response is cached: as long as the ServiceAccount, or the Token."""
    required_service_account_annotation_keys: list[str] = []
    """Annotations that the account must have, and that are passed to the plugin."""
    optional_service_account_annotation_keys: list[str] = []
    """Annotations that are passed to the plugin if the account has them."""


class ProviderSettings(Section):
    """The configuration of one plugin."""

    name: str = ""
    """The program, in --image-credential-provider-bin-dir."""
    api_version: str = ""
    """The version of its requests and responses, such as credentialprovider.kubelet.k8s.io/v1."""
    match_images: list[str] = []
    """Registries for which it is run, such as *.example.com:5000/path."""
    default_cache_duration: str | None = None
    """How long a response without a duration is cached; required."""
    args: list[str] = []
    """Its arguments."""
    env: list[EnvironmentVariable] = []
    """Additional environment variables."""
    token_attributes: TokenAttributes | None = None
    """Set if it uses tokens of pods' service accounts."""

    @property
    def cache_seconds(self) -> float:
        """How long a response without a duration is cached, in seconds."""
        return parse_duration(self.default_cache_duration or "0s")


def problems(provider: ProviderSettings) -> Iterator[tuple[str, str]]:
    """Yield the problems of a provider, by field."""
    name = provider.name
    if not name or name in {".", ".."} or "/" in name or " " in name:
        yield "name", f"{name!r} is not the name of a program: no '/', no spaces, not '.' or '..'"
    if provider.api_version not in PLUGIN_VERSIONS:
        versions = ", ".join(PLUGIN_VERSIONS)
        yield "apiVersion", f"{provider.api_version!r} is not one of {versions}"
    if not provider.match_images:
        yield "matchImages", "at least one pattern is needed"
    for index, pattern in enumerate(provider.match_images):
        if problem := check_pattern(pattern):
            yield f"matchImages[{index}]", problem
    yield from _duration_problems(provider)
    for index, variable in enumerate(provider.env):
        if not variable.name or "=" in variable.name or "\0" in variable.name + variable.value:
            yield f"env[{index}].name", f"{variable.name!r} is not the name of a variable"
    if provider.token_attributes is not None:
        yield from _token_problems(provider.token_attributes, provider.api_version)


def _duration_problems(provider: ProviderSettings) -> Iterator[tuple[str, str]]:
    if provider.default_cache_duration is None:
        yield "defaultCacheDuration", "must be given"
        return
    try:
        parse_duration(provider.default_cache_duration)
    except DurationError as error:
        yield "defaultCacheDuration", f"{error}, of at least 0"


def _token_problems(attributes: TokenAttributes, api_version: str) -> Iterator[tuple[str, str]]:
    place = "tokenAttributes"
    required = attributes.required_service_account_annotation_keys
    optional = attributes.optional_service_account_annotation_keys
    if api_version != TOKEN_VERSION:
        yield place, f"only a provider of {TOKEN_VERSION} can have them"
    if not attributes.service_account_token_audience:
        yield f"{place}.serviceAccountTokenAudience", "must be given"
    if attributes.require_service_account is None:
        yield f"{place}.requireServiceAccount", "must be given"
    if attributes.cache_type not in CACHE_TYPES:
        yield (
            f"{place}.cacheType",
            f"{attributes.cache_type!r} is not one of {', '.join(CACHE_TYPES)}",
        )
    if required and not attributes.require_service_account:
        place_of_keys = f"{place}.requiredServiceAccountAnnotationKeys"
        yield place_of_keys, "requireServiceAccount cannot be false if keys are required"
    yield from _key_problems(f"{place}.required", required)
    yield from _key_problems(f"{place}.optional", optional)
    if both := sorted(set(required) & set(optional)):
        yield place, f"{', '.join(both)}: an annotation cannot be both required and optional"


def _key_problems(place: str, keys: list[str]) -> Iterator[tuple[str, str]]:
    for index, key in enumerate(keys):
        field = f"{place}ServiceAccountAnnotationKeys[{index}]"
        if not is_qualified_name(key.lower()):
            yield field, f"{key!r} cannot be the key of an annotation"
        if key in keys[:index]:
            yield field, f"{key!r} is there twice"


KIND = "CredentialProviderConfig"
CONFIG_VERSIONS = tuple(f"kubelet.config.k8s.io/{name}" for name in ("v1", "v1beta1", "v1alpha1"))
_ENDINGS = frozenset((".json", ".yaml", ".yml"))


class CredentialProviderConfig(Section):
    """A configuration file of the kubelet."""

    api_version: str = ""
    """kubelet.config.k8s.io/v1, v1beta1 or v1alpha1."""
    kind: str = ""
    """CredentialProviderConfig."""
    providers: list[ProviderSettings] = []
    """Plugins, each with a unique name."""


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """The plugins of a node, in the order in which their credentials are tried."""

    providers: tuple[ProviderSettings, ...]
    hash: str
    """The hash of the files, the same as the kubelet's."""


def load_provider_config(path: Path, programs: Path) -> ProviderConfig:
    """Read a node's plugins; ConfigFileError if anything is wrong with them."""
    texts = [(str(file), read_text(file)) for file in _files(path)]
    found: dict[str, ProviderSettings] = {}
    for source, text in texts:
        document = parse(text, source, CredentialProviderConfig)
        try:
            found |= _checked(document.value, found, programs)
        except FieldProblem as problem:
            raise document.error(problem) from None
        _check_not_empty(document)
    sums = hashlib.sha256(b"".join(len(text).to_bytes(8, "big") + text for _, text in texts))
    return ProviderConfig(tuple(found.values()), f"sha256:{sums.hexdigest()}")


def _check_not_empty(document: ConfigDocument[CredentialProviderConfig]) -> None:
    if not document.value.providers:
        raise document.error(FieldProblem("providers", "at least one provider is needed"))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(one for one in path.iterdir() if one.suffix in _ENDINGS and not one.is_dir())
    if not files:
        raise ConfigFileError(str(path), 0, "", "no .json, .yaml or .yml file is in there")
    return files


def _checked(
    file: CredentialProviderConfig, known: dict[str, ProviderSettings], programs: Path
) -> dict[str, ProviderSettings]:
    if file.kind != KIND:
        raise FieldProblem("kind", f"{file.kind!r} is not {KIND}")
    if file.api_version not in CONFIG_VERSIONS:
        known_versions = ", ".join(CONFIG_VERSIONS)
        raise FieldProblem("apiVersion", f"{file.api_version!r} is not one of {known_versions}")
    found: dict[str, ProviderSettings] = {}
    for index, provider in enumerate(file.providers):
        place = f"providers[{index}]"
        for field, problem in problems(provider):
            raise FieldProblem(f"{place}.{field}", problem)
        if provider.name in known or provider.name in found:
            raise FieldProblem(f"{place}.name", f"{provider.name!r} is there twice")
        _check_program(programs, provider.name, f"{place}.name")
        found[provider.name] = provider
    return found


def _check_program(programs: Path, name: str, place: str) -> None:
    path = programs / name
    if not path.is_file():
        raise FieldProblem(place, f"there is no program {path}")
    if not os.access(path, os.X_OK):
        raise FieldProblem(place, f"{path} cannot be executed")
