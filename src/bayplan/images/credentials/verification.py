"""Whether a pod may have an image that is already on the node: credential verification.

An image that was pulled with a secret is not handed to a pod without it: such a pod has to pull,
and so to prove to the registry that it may. Which images are verified is the operator's policy:

* `NeverVerify`: none.
* `NeverVerifyPreloadedImages` (the default): those that the manager itself pulled.
* `NeverVerifyAllowlistedImages`: all but those on a list of names and `prefix/*` patterns.
* `AlwaysVerify`: all.

Everything here is a pure function of a record; `bayplan.images.credentials.memory` keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from bayplan.images.credentials.keyring import (
    Credential,
    SecretSource,
    ServiceAccountSource,
)
from bayplan.images.credentials.records import (
    ImagePullCredentials,
    ImagePullSecret,
    ImagePullServiceAccount,
)
from bayplan.kube.imagereferences import InvalidReferenceError, without_tag_or_digest

_WILDCARD = "/*"


class VerificationPolicy(StrEnum):
    """Which images are verified."""

    NEVER = "NeverVerify"
    NEVER_PRELOADED = "NeverVerifyPreloadedImages"
    NEVER_ALLOWLISTED = "NeverVerifyAllowlistedImages"
    ALWAYS = "AlwaysVerify"


class Verdict(StrEnum):
    """The outcome of a check, by the kubelet's names."""

    POLICY_ALLOWED = "credentialPolicyAllowed"
    RECORD_FOUND = "credentialRecordFound"
    MUST_AUTHENTICATE = "mustAuthenticate"
    ERROR = "error"

    @property
    def must_pull(self) -> bool:
        """Whether the pod has to go to the registry."""
        return self in {Verdict.MUST_AUTHENTICATE, Verdict.ERROR}


@dataclass(frozen=True, slots=True)
class Verification:
    """The operator's policy, with its list of names that are never verified."""

    policy: VerificationPolicy = VerificationPolicy.NEVER_PRELOADED
    allowlist: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.allowlist:
            _check_pattern(pattern)

    def required(self, image: str, *, pulled_by_us: bool) -> bool:
        """Whether this image's credentials must be verified."""
        match self.policy:
            case VerificationPolicy.NEVER:
                return False
            case VerificationPolicy.NEVER_PRELOADED:
                return pulled_by_us
            case VerificationPolicy.NEVER_ALLOWLISTED:
                return not self._allows(image)
            case VerificationPolicy.ALWAYS:
                return True

    def _allows(self, image: str) -> bool:
        name = without_tag_or_digest(image)
        return any(
            name.startswith(pattern[:-1]) if pattern.endswith(_WILDCARD) else name == pattern
            for pattern in self.allowlist
        )


def matching_secret(
    recorded: ImagePullCredentials, credentials: Sequence[Credential]
) -> ImagePullSecret | None:
    """The pod's secret that the record vouches for: the same content, or the same secret.

    A secret whose content has changed since (a rotation) is still the same secret, and a copy of it
    in another namespace has the same content; either is enough.
    """
    for credential in credentials:
        if not isinstance(credential.source, SecretSource):
            continue
        secret = ImagePullSecret.of(credential.source, credential.hash)
        if any(secret.is_same_or_equal(known) for known in recorded.kubernetes_secrets):
            return secret
    return None


def has_account(recorded: ImagePullCredentials, credentials: Sequence[Credential]) -> bool:
    """Whether the pod's service account is one that the record vouches for."""
    accounts = (one.source for one in credentials)
    return any(
        isinstance(source, ServiceAccountSource)
        and ImagePullServiceAccount.of(source) in recorded.kubernetes_service_accounts
        for source in accounts
    )


def _check_pattern(pattern: str) -> None:
    name = pattern.removesuffix(_WILDCARD)
    if pattern != pattern.strip() or not name or "*" in name:
        raise ValueError(
            f"{pattern!r}: an image that is never verified is a name, or a prefix ending in '/*'"
        )
    if pattern.endswith(_WILDCARD):
        return
    try:
        bare = without_tag_or_digest(pattern)
    except InvalidReferenceError as error:
        raise ValueError(f"an image that is never verified: {error}") from error
    if bare != pattern:
        raise ValueError(f"{pattern!r}: neither tag nor digest may be given here")
