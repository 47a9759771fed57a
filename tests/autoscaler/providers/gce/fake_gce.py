"""A server with Compute Engine's REST API for managed instance groups, as strict as the real one.

It refuses unknown parameters and fields, wrong zones, negative sizes, request IDs that are not
UUIDs, and deletions of instances that are not in the group. Changes take effect when their
operation ends, which is some polls later; a request ID that comes again starts no second operation.
Faults can be set for each method.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from aiohttp import web

from tests.autoscaler.providers.gce.project import (
    API,
    PROJECT,
    REGION,
    ZONES,
    FakeMig,
    FakeProject,
)

Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Answers a request instead of the server; None lets it through."""
Json = dict[str, Any]
_FILTER = re.compile(r'name eq "([^"]+)"')
_PAGED = {"maxResults", "pageToken", "filter", "orderBy", "returnPartialSuccess"}
_ALLOWED = {
    "aggregatedList": {*_PAGED, "includeAllScopes"},
    "listManagedInstances": _PAGED,
    "resize": {"size", "requestId"},
    "deleteInstances": {"requestId"},
}


class RefusedRequestError(Exception):
    """A request that Compute Engine refuses."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.response = refusal(status, reason, message)


def refusal(status: int, reason: str, message: str = "no") -> web.Response:
    error = {"message": message, "domain": "global", "reason": reason}
    body = {"error": {"code": status, "message": message, "errors": [error]}}
    return web.json_response(body, status=status)


@dataclass
class FakeOperation:
    """An operation, which takes effect when it ends."""

    name: str
    place: str
    polls: int
    effect: Callable[[], None]
    errors: list[Json] = field(default_factory=list)
    done: bool = False

    def poll(self) -> Json:
        self.polls -= 1
        if self.polls < 0 and not self.done:
            self.done = True
            if not self.errors:
                self.effect()
        status = "DONE" if self.done else "RUNNING"
        shown: Json = {"name": self.name, "id": "5", "status": status}
        failed = {"error": {"errors": self.errors}, "httpErrorStatusCode": 400}
        return shown | (failed if self.done and self.errors else {})


@dataclass
class FakeGce:
    """The server, what it was asked, and what goes wrong."""

    project: FakeProject = field(default_factory=FakeProject)
    host: str = ""
    asked: list[str] = field(default_factory=list)
    faults: dict[str, Fault] = field(default_factory=dict)
    polls: int = 1
    """After how many polls an operation ends."""
    page: int = 500
    """The most items in a page."""
    operation_errors: list[Json] = field(default_factory=list)
    """With which operations end."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by every answer."""
    operations: dict[str, FakeOperation] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)

    async def answer(self, request: web.Request, method: str) -> web.StreamResponse:
        self.asked.append(method)
        fault = self.faults.get(method) or self.faults.get("*")
        if fault is not None and (instead := await fault(request)) is not None:
            return instead
        try:
            found = await self.act(request, method)
        except RefusedRequestError as error:
            return error.response
        self.news.set()
        return web.json_response(found)

    async def act(self, request: web.Request, method: str) -> Json:
        """Do what a request asks for."""
        unknown = set(request.query) - _ALLOWED.get(method, set())
        if unknown:
            raise RefusedRequestError(400, "invalidParameter", f"Unknown name {sorted(unknown)}")
        if request.match_info["project"] != PROJECT:
            raise RefusedRequestError(403, "forbidden", "no permission in this project")
        self._check_place(request)
        found: Json = await getattr(self, f"_{method}")(request)
        return found

    def _check_place(self, request: web.Request) -> None:
        scope, location = request.match_info.get("scope"), request.match_info.get("location")
        known = {"zones": ZONES, "regions": (REGION,)}
        if scope is not None and location not in known[scope]:
            message = f"Invalid value for field '{scope[:-1]}': '{location}'. Unknown {scope[:-1]}."
            raise RefusedRequestError(400, "invalid", message)

    def _mig(self, request: web.Request) -> FakeMig:
        info = request.match_info
        found = self.project.find(info["scope"], info["location"], info["name"])
        if found is None:
            message = f"The resource '{request.path[12:]}' was not found"
            raise RefusedRequestError(404, "notFound", message)
        return found

    async def _get(self, request: web.Request) -> Json:
        return self._mig(request).shown()

    async def _aggregatedList(self, request: web.Request) -> Json:  # noqa: N802 - a method's name
        names = _filter(request)
        groups = [one for one in self.project.groups.values() if names.fullmatch(one.name)]
        some, token = self._cut(request, groups)
        items: Json = {}
        for place in (f"regions/{REGION}", *(f"zones/{one}" for one in ZONES)):
            mine = [one.shown() for one in some if f"{one.scope}/{one.location}" == place]
            empty = {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": f"none in {place}"}}
            items[place] = {"instanceGroupManagers": mine} if mine else empty
        return {"kind": "compute#aggregatedList", "items": items, **token}

    async def _listManagedInstances(self, request: web.Request) -> Json:  # noqa: N802
        some, token = self._cut(request, self._mig(request).instances)
        return {"managedInstances": [one.shown() for one in some], **token}

    def _cut(self, request: web.Request, items: list[Any]) -> tuple[list[Any], Json]:
        most, start = request.query.get("maxResults", "500"), request.query.get("pageToken", "p0")
        if not most.isdecimal() or int(most) > 500 or not re.fullmatch(r"p\d+", start):
            raise RefusedRequestError(400, "invalid", "Invalid value for maxResults or pageToken")
        end = int(start[1:]) + min(int(most), self.page)
        token = {"nextPageToken": f"p{end}"} if end < len(items) else {}
        return items[int(start[1:]) : end], token

    async def _resize(self, request: web.Request) -> Json:
        group, size = self._mig(request), request.query.get("size", "")
        if not size.isdecimal():
            message = f"Invalid value for field 'size': '{size}'. It must be 0 or more."
            raise RefusedRequestError(400, "invalid", message)
        return self._start(request, group, lambda: group.resize(int(size), self.project.errors), [])

    async def _deleteInstances(self, request: web.Request) -> Json:  # noqa: N802
        group, body = self._mig(request), await request.json()
        if set(body) - {"instances", "skipInstancesOnValidationError"}:
            raise RefusedRequestError(400, "invalid", "Unknown name in the body")
        urls = body.get("instances") or []
        if not 0 < len(urls) <= 1000 or len(set(urls)) < len(urls):
            raise RefusedRequestError(400, "invalid", "Invalid value for field 'instances'")
        for url in urls:
            _check_instance(group, url)
        errors: list[Json] = []
        strange = set(urls) - {one.url for one in group.active()}
        if strange and not body.get("skipInstancesOnValidationError"):
            message = f"{sorted(strange)} are not members, or are being deleted"
            errors = [{"code": "INVALID_USAGE", "message": message}]
        return self._start(request, group, lambda: group.delete(set(urls)), errors)

    def _start(
        self, request: web.Request, group: FakeMig, effect: Callable[[], None], errors: list[Json]
    ) -> Json:
        identity = request.query.get("requestId", "")
        if identity and not _is_uuid(identity):
            raise RefusedRequestError(400, "invalid", "Invalid value for field 'requestId'")
        if identity in self.identities:
            return self.operations[self.identities[identity]].poll()
        name = f"operation-{len(self.operations) + 1}"
        failed = [*errors, *self.operation_errors]
        made = FakeOperation(name, f"{group.scope}/{group.location}", self.polls, effect, failed)
        self.operations[name] = made
        if identity:
            self.identities[identity] = name
        return made.poll()

    async def _getOperation(self, request: web.Request) -> Json:  # noqa: N802
        info = request.match_info
        found = self.operations.get(info["name"])
        if found is None or found.place != f"{info['scope']}/{info['location']}":
            raise RefusedRequestError(404, "notFound", "there is no such operation")
        return found.poll()

    async def _getTemplate(self, request: web.Request) -> Json:  # noqa: N802
        found = self.project.templates.get(f"{API}{request.path.removeprefix('/compute/v1')}")
        if found is None:
            raise RefusedRequestError(404, "notFound", f"'{request.path}' was not found")
        return found

    async def _getMachineType(self, request: web.Request) -> Json:  # noqa: N802
        name = request.match_info["name"]
        if name not in self.project.types:
            raise RefusedRequestError(404, "notFound", f"machine type '{name}' was not found")
        return {"name": name, **self.project.types[name]}

    def fails(self, method: str, status: int, reason: str = "", *, times: int = 10**6) -> None:
        """Refuse a method, so many times."""
        left = [times]

        async def fault(_: web.Request) -> web.Response | None:
            left[0] -= 1
            return refusal(status, reason) if left[0] >= 0 else None

        self.faults[method] = fault

    def loses(self, method: str, *, times: int = 1) -> None:
        """Do what a method asks for, but answer with an error, so many times."""
        left = [times]

        async def fault(request: web.Request) -> web.Response | None:
            left[0] -= 1
            if left[0] < 0:
                return None
            await self.act(request, method)
            return refusal(503, "backendError")

        self.faults[method] = fault

    def says(self, method: str, body: str) -> None:
        """Answer a method with that."""

        async def fault(_: web.Request) -> web.Response:
            return web.Response(text=body, content_type="application/json")

        self.faults[method] = fault

    def hangs(self, method: str) -> None:
        """Never answer a method."""

        async def fault(_: web.Request) -> web.Response:
            await asyncio.Event().wait()
            return web.Response()

        self.faults[method] = fault


def _is_uuid(text: str) -> bool:
    try:
        return UUID(text).int != 0
    except ValueError:
        return False


def _filter(request: web.Request) -> re.Pattern[str]:
    text = request.query.get("filter", 'name eq ".*"')
    found = _FILTER.fullmatch(text)
    if found is None:
        raise RefusedRequestError(400, "invalid", f"Invalid list filter expression: {text}")
    return re.compile(found[1])


def _check_instance(group: FakeMig, url: str) -> None:
    found = re.fullmatch(rf"{API}/projects/{PROJECT}/zones/([a-z0-9-]+)/instances/[a-z0-9-]+", url)
    if found is None or found[1] not in group.zones:
        message = f"Invalid value for field 'instances': '{url}' is in another zone, or no instance"
        raise RefusedRequestError(400, "invalid", message)


_ROOT = "/compute/v1/projects/{project}"
_PLACE = _ROOT + "/{scope:zones|regions}/{location}"
_GROUP = _PLACE + "/instanceGroupManagers/{name}"
_ROUTES = {
    ("GET", _ROOT + "/aggregated/instanceGroupManagers"): "aggregatedList",
    ("GET", _GROUP): "get",
    ("POST", _GROUP + "/listManagedInstances"): "listManagedInstances",
    ("POST", _GROUP + "/resize"): "resize",
    ("POST", _GROUP + "/deleteInstances"): "deleteInstances",
    ("GET", _PLACE + "/operations/{name}"): "getOperation",
    ("GET", _ROOT + "/global/instanceTemplates/{name}"): "getTemplate",
    ("GET", _ROOT + "/{scope:regions}/{location}/instanceTemplates/{name}"): "getTemplate",
    ("GET", _ROOT + "/{scope:zones}/{location}/machineTypes/{name}"): "getMachineType",
}


@asynccontextmanager
async def serving() -> AsyncIterator[FakeGce]:
    """A server, while the context lasts."""
    fake = FakeGce()
    app = web.Application()
    for (verb, path), method in _ROUTES.items():

        async def handler(request: web.Request, method: str = method) -> web.StreamResponse:
            return await fake.answer(request, method)

        app.router.add_route(verb, path, handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        fake.host = f"127.0.0.1:{runner.addresses[0][1]}"
        yield fake
    finally:
        await runner.cleanup()
