"""The question that an authorizer answers, and the one that always says yes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import User


class Attributes(NamedTuple):
    """What somebody wants to do: to a resource, or to a path that is none."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def sentence(self) -> str:
        """The refusal in words."""
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return (
            f'User "{self.user.name}" cannot {self.verb} resource "{resource}" in API group '
            f'"{self.group}" {where}'
        )


class Decision(NamedTuple):
    """Yes or no, and why."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides what users may do."""

    def authorize(self, attributes: Attributes) -> Decision:
        """May this happen?"""

    def rules(self, user: User, namespace: str) -> list[JsonObject]:
        """Everything that a user may do in a namespace."""


EVERYTHING: list[JsonObject] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]


class AlwaysAllow:
    """Everybody who is known may do everything."""

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002
        """Yes."""
        return Decision(True)

    def rules(self, user: User, namespace: str) -> list[JsonObject]:  # noqa: ARG002
        """All of them."""
        return EVERYTHING


@dataclass(frozen=True, slots=True)
class Audited:
    """Another authorizer's decisions, each told to somebody."""

    judge: Authorizer
    told: Callable[[Attributes, Decision], None]

    def authorize(self, attributes: Attributes) -> Decision:
        """As the other one decides."""
        decision = self.judge.authorize(attributes)
        self.told(attributes, decision)
        return decision

    def rules(self, user: User, namespace: str) -> list[JsonObject]:
        """As the other one says."""
        return self.judge.rules(user, namespace)
