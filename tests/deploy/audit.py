"""What was asked of a server, by whom, and whether it was allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from bayplan.embedded.apiserver.authorization.rbac import Attributes, AuthorizationDecision

ACCOUNTS = "system:serviceaccount:"


class Asked(NamedTuple):
    """One question."""

    account: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str


@dataclass(slots=True)
class Audit:
    """What service accounts have asked, every question once."""

    allowed: set[Asked] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def __call__(self, one: Attributes, decision: AuthorizationDecision) -> None:
        who = one.user.name
        if not who.startswith(ACCOUNTS) or not one.resource:
            return
        if not decision.allowed:
            self.refused.add(one.sentence())
            return
        account = who.rpartition(":")[2]
        resource = f"{one.resource}/{one.subresource}" if one.subresource else one.resource
        self.allowed.add(Asked(account, one.verb, one.group, resource, one.namespace, one.name))
