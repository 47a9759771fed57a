"""Kubeconfig files: their parts as users write them; reading, merging, and picking a context.

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
    """Where a server is and how to know it."""

    server: str = ""
    """Its URL."""
    certificate_authority: str = ""
    """A file with who signs its certificate."""
    certificate_authority_data: str = ""
    """The same, as base64."""
    insecure_skip_tls_verify: bool = False
    """Believe any certificate."""
    tls_server_name: str = ""
    """The name in its certificate, if it is not that of the URL."""
    proxy_url: str = ""
    """An HTTP or HTTPS proxy on the way."""
    extensions: list[NamedExtension] | None = None
    """Handed to exec plugins that ask for it."""


class NamedExtension(_Kebab):
    """Something that a cluster says to an exec plugin."""

    name: str
    extension: object = None


class ExecVariable(msgspec.Struct):
    """A variable for a plugin's environment."""

    name: str
    value: str = ""


class ExecSettings(msgspec.Struct, rename="camel"):
    """A program that gives credentials."""

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
    """Who we are."""

    token: str = ""
    """A bearer token."""
    token_file: str = msgspec.field(default="", name="tokenFile")
    """A file with one, read again when it changes."""
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
    """A program that gives credentials."""
    auth_provider: AuthProvider | None = None
    """oidc and gcp, of older files."""
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
    """One file."""

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
class Chosen:
    """What one context says, each part with the directory that its relative paths start from."""

    cluster: Cluster
    cluster_home: Path
    user: User
    user_home: Path
    namespace: str


def choose(paths: Sequence[Path], context: str | None = None) -> Chosen:
    """The given or current context of those files, merged."""
    files = [(path.absolute().parent, read(path)) for path in paths if path.exists()]
    if not files:
        raise ConfigError(f"no kubeconfig at {', '.join(map(str, paths))}")
    contexts = (
        (home, one.name, one.context) for home, file in files for one in file.contexts or ()
    )
    clusters = (
        (home, one.name, one.cluster) for home, file in files for one in file.clusters or ()
    )
    users = ((home, one.name, one.user) for home, file in files for one in file.users or ())
    _, wanted = _first("context", context or _current(file for _, file in files), contexts)
    cluster_home, cluster = _first("cluster", wanted.cluster, clusters)
    user_home, user = _first("user", wanted.user, users) if wanted.user else (Path(), User())
    return Chosen(cluster, cluster_home, user, user_home, wanted.namespace or "default")


def _current(files: Iterable[KubeConfig]) -> str:
    named = next((file.current_context for file in files if file.current_context), None)
    if named is None:
        raise ConfigError("the kubeconfig has no current context, and none was asked for")
    return named


def _first(
    what: str, name: str, entries: Iterable[tuple[Path, str, Entry | None]]
) -> tuple[Path, Entry]:
    known = []
    for home, found, entry in entries:
        if found == name and entry is not None:
            return home, entry
        known.append(found)
    raise ConfigError(f"the kubeconfig has no {what} named {name!r}{suggestion(name, known)}")


def read(path: Path) -> KubeConfig:
    """One kubeconfig file."""
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
        place = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{place}: not YAML") from None
