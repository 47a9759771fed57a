"""Reviews: questions that are asked by creating an object which is never stored."""

from __future__ import annotations

from bayplan.embedded.apiserver.authorization.authorizer import Attributes, Authorizer
from bayplan.embedded.apiserver.errors import bad_request
from bayplan.embedded.apiserver.http.handlers import Answer, Exchange, Handler, read_object
from bayplan.embedded.apiserver.http.wire.responses import json_response
from bayplan.embedded.apiserver.identity.authenticator import Authenticator
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.request import User
from bayplan.embedded.apiserver.rest.conforming import conform


class Reviews:
    """Answers who somebody is and what somebody may do."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._handlers: dict[str, Handler] = {
            "SelfSubjectAccessReview": self._own_access,
            "SubjectAccessReview": self._access,
            "LocalSubjectAccessReview": self._access,
            "SelfSubjectRulesReview": self._own_rules,
            "TokenReview": self._token,
            "SelfSubjectReview": self._self,
        }

    def handler(self, kind: Kind) -> Handler | None:
        """Who answers a review; None for kinds that are stored."""
        return self._handlers.get(kind.kind) if kind.verbs == ("create",) else None

    async def _own_access(self, exchange: Exchange) -> Answer:
        review, spec = await _review(exchange)
        return self._decide(review, spec, exchange.call.user)

    async def _access(self, exchange: Exchange) -> Answer:
        review, spec = await _review(exchange)
        name, groups = spec.get("user") or "", spec.get("groups") or []
        if not name and not groups:
            raise bad_request("spec.user: Required value: at least one of user or group")
        return self._decide(review, spec, User(name, tuple(groups)))

    def _decide(self, review: JsonObject, spec: JsonObject, user: User) -> Answer:
        decision = self._authorizer.authorize(_attributes(spec, user))
        review["status"] = {"allowed": decision.allowed}
        if decision.reason:
            review["status"]["reason"] = decision.reason
        return json_response(review, 201)

    async def _own_rules(self, exchange: Exchange) -> Answer:
        review, spec = await _review(exchange)
        namespace = spec.get("namespace") or ""
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self._authorizer.rules(exchange.call.user, namespace)
        review["status"] = {
            "resourceRules": [rule for rule in rules if "nonResourceURLs" not in rule],
            "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        return json_response(review, 201)

    async def _token(self, exchange: Exchange) -> Answer:
        review, spec = await _review(exchange)
        user = self._authenticator.tokens.find(spec.get("token") or "")
        review["spec"] = {}
        if user is None:
            review["status"] = {"authenticated": False, "error": "the token is not known"}
        else:
            review["status"] = {"authenticated": True, "user": _user_info(user)}
        return json_response(review, 201)

    async def _self(self, exchange: Exchange) -> Answer:
        review, _ = await _review(exchange)
        review["metadata"]["creationTimestamp"] = exchange.backend.now()
        review["status"] = {"userInfo": _user_info(exchange.call.user)}
        return json_response(review, 201)


async def _review(exchange: Exchange) -> tuple[JsonObject, JsonObject]:
    review = await read_object(exchange)
    kind = exchange.call.kind
    conform(exchange.call, review)
    review.update(kind=kind.kind, apiVersion=kind.api_version)
    review.setdefault("metadata", {})
    return review, review.get("spec") or {}


def _attributes(spec: JsonObject, user: User) -> Attributes:
    path, wanted = spec.get("nonResourceAttributes"), spec.get("resourceAttributes")
    if path:
        return Attributes(user, path.get("verb") or "", path=path.get("path") or "")
    if not wanted:
        raise bad_request("spec: exactly one of resourceAttributes or nonResourceAttributes")
    return Attributes(
        user,
        wanted.get("verb") or "",
        wanted.get("group") or "",
        wanted.get("resource") or "",
        wanted.get("subresource") or "",
        wanted.get("namespace") or "",
        wanted.get("name") or "",
    )


def _user_info(user: User) -> JsonObject:
    info: JsonObject = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = user.extra
    return info
