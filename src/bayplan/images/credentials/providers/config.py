"""CredentialProviderConfig as the kubelet reads it: a file, or a directory of files.

    apiVersion: kubelet.config.k8s.io/v1
    kind: CredentialProviderConfig
    providers:
    - name: ecr-credential-provider
      apiVersion: credentialprovider.kubelet.k8s.io/v1
      matchImages: ["*.dkr.ecr.*.amazonaws.com"]
      defaultCacheDuration: 12h

A file that cannot be used is refused with the file, the line and the field.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from bayplan.base.configfiles import ConfigFileError, Document, FieldProblem, parse, read_text
from bayplan.images.credentials.providers.settings import ProviderSettings, problems
from bayplan.kube.configvalues import Section

KIND = "CredentialProviderConfig"
CONFIG_VERSIONS = tuple(f"kubelet.config.k8s.io/{name}" for name in ("v1", "v1beta1", "v1alpha1"))
_ENDINGS = frozenset((".json", ".yaml", ".yml"))


class CredentialProviderConfig(Section):
    """A file as the kubelet takes it."""

    api_version: str = ""
    """kubelet.config.k8s.io/v1, v1beta1 or v1alpha1."""
    kind: str = ""
    """CredentialProviderConfig."""
    providers: list[ProviderSettings] = []
    """Plugins, each of another name."""


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """The plugins of a node, in the order in which their credentials are tried."""

    providers: tuple[ProviderSettings, ...]
    hash: str
    """A fingerprint of what was read, the same that the kubelet computes."""


def load_provider_config(path: Path, programs: Path) -> ProviderConfig:
    """Read the plugins that a node has; ConfigFileError if anything about them is wrong."""
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


def _check_not_empty(document: Document[CredentialProviderConfig]) -> None:
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
