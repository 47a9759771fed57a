"""Pull policies: when an image is looked for on the node, and when it is pulled."""

from __future__ import annotations

from enum import StrEnum

from bayplan.kube.imagereferences import DEFAULT_TAG, parse_image


class PullPolicy(StrEnum):
    """`imagePullPolicy` of a container."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"

    @property
    def looks_first(self) -> bool:
        """Whether the node is asked before the registry; Always leaves re-use to the runtime."""
        return self is not PullPolicy.ALWAYS


def effective_policy(written: str, image: str) -> PullPolicy:
    """The policy as written, or the API's default: Always for `latest`, else IfNotPresent.

    >>> effective_policy("", "busybox:1.35").value
    'IfNotPresent'
    """
    if written:
        return PullPolicy(written)
    reference = parse_image(image).with_default_tag()
    return PullPolicy.ALWAYS if reference.tag == DEFAULT_TAG else PullPolicy.IF_NOT_PRESENT
