"""Asking the server which resource serves a kind that we have no type for.

One request a group and version, remembered for as long as the client lives; a kind that is not in
what we remember is asked for again, since its definition may just have been installed.
"""

from __future__ import annotations

from bayplan.client.errors import ClientError, NotFoundError
from bayplan.client.objects import decode
from bayplan.client.resources import Resource, T, Untyped, known_untyped, untyped
from bayplan.client.wire.requests import Request
from bayplan.client.wire.sending import Sender
from bayplan.kube.meta import Struct


class UnknownKindError(ClientError):
    """The server does not serve a kind of that name in that group and version."""


class ApiResource(Struct):
    """A resource as the server announces it."""

    name: str
    kind: str
    namespaced: bool = False


class ApiResourceList(Struct):
    """All resources of a group and version."""

    resources: list[ApiResource] = []


class Discovery:
    """What the server serves, as far as anyone has asked."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._known: dict[tuple[str, str], Resource[Untyped]] = {}

    async def resource(self, api_version: str, kind: str) -> Resource[Untyped]:
        """The resource that serves that kind."""
        wanted = (api_version, kind)
        if known := known_untyped(*wanted) or self._known.get(wanted):
            return known
        await self._ask(api_version)
        if wanted not in self._known:
            raise UnknownKindError(f"the server has no kind {kind!r} in {api_version!r}")
        return self._known[wanted]

    async def serves(self, resource: Resource[T]) -> bool:
        """Whether the server has that resource now; having a type for it here does not tell."""
        wanted = (resource.api_version, resource.kind)
        await self._ask(resource.api_version)
        return wanted in self._known

    async def _ask(self, api_version: str) -> None:
        group, _, version = api_version.rpartition("/")
        root = untyped(group, version, "", "").root
        try:
            body = await self._sender.fetch(Request("GET", root, repeatable=True))
        except NotFoundError:
            return
        for found in decode(body, ApiResourceList).resources:
            if "/" not in found.name:
                self._known[api_version, found.kind] = untyped(
                    group, version, found.name, found.kind, namespaced=found.namespaced
                )
