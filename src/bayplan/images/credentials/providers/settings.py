"""What an operator says of a plugin, and what can be wrong with that, by field."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.base.durations import DurationError, parse_duration
from bayplan.images.credentials.providers.matching import check_pattern
from bayplan.kube.configvalues import Section
from bayplan.kube.names import is_qualified_name

TOKEN_VERSION = "credentialprovider.kubelet.k8s.io/v1"  # noqa: S105 - an API's name
PLUGIN_VERSIONS = (
    TOKEN_VERSION,
    "credentialprovider.kubelet.k8s.io/v1beta1",
    "credentialprovider.kubelet.k8s.io/v1alpha1",
)
CACHE_TYPES = ("ServiceAccount", "Token")


class EnvironmentVariable(Section):
    """A variable that a plugin is given."""

    name: str
    """Its name."""
    value: str = ""
    """What it holds."""


class TokenAttributes(Section):
    """A wish for a token of the pod's service account."""

    service_account_token_audience: str = ""
    """For whom the token is; must be said."""
    require_service_account: bool | None = None
    """Whether pods without a service account are left out; must be said."""
    cache_type: str = ""
    """How long an answer is good: as long as the ServiceAccount, or the Token."""
    required_service_account_annotation_keys: list[str] = []
    """Annotations that the account must have, and that are handed on."""
    optional_service_account_annotation_keys: list[str] = []
    """Annotations that are handed on if they are there."""


class ProviderSettings(Section):
    """What an operator says of one plugin."""

    name: str = ""
    """The program, in --image-credential-provider-bin-dir."""
    api_version: str = ""
    """The version of what it is asked and answers, such as credentialprovider.kubelet.k8s.io/v1."""
    match_images: list[str] = []
    """Registries for which it is asked, such as *.example.com:5000/path."""
    default_cache_duration: str | None = None
    """How long an answer is good that does not say so itself; must be said."""
    args: list[str] = []
    """Its arguments."""
    env: list[EnvironmentVariable] = []
    """Variables that it is given besides ours."""
    token_attributes: TokenAttributes | None = None
    """If it works with tokens of pods' service accounts."""

    @property
    def cache_seconds(self) -> float:
        """How long an answer is good that does not say so itself."""
        return parse_duration(self.default_cache_duration or "0s")


def problems(provider: ProviderSettings) -> Iterator[tuple[str, str]]:
    """What is wrong with a provider, by field."""
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


def _token_problems(wish: TokenAttributes, api_version: str) -> Iterator[tuple[str, str]]:
    place = "tokenAttributes"
    required = wish.required_service_account_annotation_keys
    optional = wish.optional_service_account_annotation_keys
    if api_version != TOKEN_VERSION:
        yield place, f"only a provider of {TOKEN_VERSION} can have them"
    if not wish.service_account_token_audience:
        yield f"{place}.serviceAccountTokenAudience", "must be given"
    if wish.require_service_account is None:
        yield f"{place}.requireServiceAccount", "must be given"
    if wish.cache_type not in CACHE_TYPES:
        yield f"{place}.cacheType", f"{wish.cache_type!r} is not one of {', '.join(CACHE_TYPES)}"
    if required and not wish.require_service_account:
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
