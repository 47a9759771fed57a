"""Kubeconfig files: their fields, how they are read and merged, and the resolved context.

Several files (`KUBECONFIG=a:b`) merge as kubectl merges them: for clusters, users, contexts and the
current context alike the first file to name one wins, and a relative path belongs to the file that
wrote it. Errors name the file and the field and never quote a value, since a value may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from bayplan.base.suggestions import suggestion
from bayplan.client.errors import ConfigError


class _Kebab(msgspec.Struct, rename="kebab", kw_only=True):
    """Kubeconfig writes its keys with dashes."""


class Cluster(_Kebab):
    """A server's address and how it is authenticated."""

    server: str = ""
    """The server's URL."""
    certificate_authority: str = ""
    """A file with the certificate authority."""
    certificate_authority_data: str = ""
    """The certificate authority as base64."""
    insecure_skip_tls_verify: bool = False
    """Accept any certificate."""
    tls_server_name: str = ""
    """The name in its certificate, if it is not that of the URL."""
    proxy_url: str = ""
    """The URL of an HTTP or HTTPS proxy."""
    extensions: list[NamedExtension] | None = None
    """Passed to exec plugins that ask for it."""


class NamedExtension(_Kebab):
    """A named setting of a cluster for exec plugins."""

    name: str
    extension: object = None


class ExecVariable(msgspec.Struct):
    """An environment variable of an exec plugin."""

    name: str
    value: str = ""


class ExecSettings(msgspec.Struct, rename="camel"):
    """An exec plugin: a program that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    provide_cluster_info: bool = False
    install_hint: str = ""


class AuthProvider(msgspec.Struct):
    """A credential provider that was once built into clients."""

    name: str
    config: dict[str, str] | None = None


class User(_Kebab):
    """A user and its credentials."""

    token: str = ""
    """A bearer token."""
    token_file: str = msgspec.field(default="", name="tokenFile")
    """A file with a bearer token, read again when it changes."""
    username: str = ""
    """With the password, for basic authentication."""
    password: str = ""
    client_certificate: str = ""
    """A file; read again when it changes."""
    client_certificate_data: str = ""
    client_key: str = ""
    """Its key."""
    client_key_data: str = ""
    exec: ExecSettings | None = None
    """An exec plugin: a program that prints credentials."""
    auth_provider: AuthProvider | None = None
    """The auth providers oidc and gcp of older files."""
    impersonate: str = msgspec.field(default="", name="as")
    """Act as this user."""
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(
        default=None, name="as-user-extra"
    )


class Context(_Kebab):
    """A cluster, a user, and the namespace to work in."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct):
    """A cluster and its name."""

    name: str
    cluster: Cluster | None = None


class NamedUser(msgspec.Struct):
    """A user and its name."""

    name: str
    user: User | None = None


class NamedContext(msgspec.Struct):
    """A context and its name."""

    name: str
    context: Context | None = None


class KubeConfig(_Kebab):
    """A kubeconfig file."""

    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None
    current_context: str | None = None


LARGEST_FILE = 16 << 20
_YamlLoader: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class ResolvedContext:
    """A context's cluster, user and namespace, with the directories of their relative paths."""

    cluster: Cluster
    cluster_directory: Path
    user: User
    user_directory: Path
    namespace: str


def resolve_context(paths: Sequence[Path], context: str | None = None) -> ResolvedContext:
    """Return the given or current context of those files, merged."""
    files = [(path.absolute().parent, read_kubeconfig(path)) for path in paths if path.exists()]
    if not files:
        raise ConfigError(f"no kubeconfig at {', '.join(map(str, paths))}")
    contexts = (
        (directory, entry.name, entry.context)
        for directory, file in files
        for entry in file.contexts or ()
    )
    clusters = (
        (directory, entry.name, entry.cluster)
        for directory, file in files
        for entry in file.clusters or ()
    )
    users = (
        (directory, entry.name, entry.user)
        for directory, file in files
        for entry in file.users or ()
    )
    _, wanted = _first("context", context or _current(file for _, file in files), contexts)
    cluster_directory, cluster = _first("cluster", wanted.cluster, clusters)
    user_directory, user = _first("user", wanted.user, users) if wanted.user else (Path(), User())
    return ResolvedContext(
        cluster, cluster_directory, user, user_directory, wanted.namespace or "default"
    )


def _current(files: Iterable[KubeConfig]) -> str:
    named = next((file.current_context for file in files if file.current_context), None)
    if named is None:
        raise ConfigError("the kubeconfig has no current context, and none was given")
    return named


def _first(
    what: str, name: str, entries: Iterable[tuple[Path, str, Entry | None]]
) -> tuple[Path, Entry]:
    known = []
    for directory, found, entry in entries:
        if found == name and entry is not None:
            return directory, entry
        known.append(found)
    raise ConfigError(f"the kubeconfig has no {what} named {name!r}{suggestion(name, known)}")


def read_kubeconfig(path: Path) -> KubeConfig:
    """Read a kubeconfig file."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ConfigError(f"{path} is too large for a kubeconfig")
        return msgspec.convert(_parse(path) or {}, KubeConfig)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from None


def _parse(path: Path) -> object:
    try:
        return yaml.load(path.read_bytes(), Loader=_YamlLoader)  # noqa: S506 # it is a safe one
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not YAML") from None
