"""The compute API of Azure Resource Manager on a port of 127.0.0.1, as strict as the real one.

It refuses what Azure refuses: requests without a token or an api-version, unknown subscriptions,
resource groups, scale sets and instances, a capacity above the maximum or the quota, an etag that
is not the current one, and fields and filters that the API does not have. Operations are accepted
first and done by `settle`, as Azure does them later.

Faults replace the answer of an operation: see `Trouble`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
GROUP = "MC_Cluster"
LOCATION = "westeurope"
TOKEN = "very-secret-token"
MOST = 1000
"""The maximum capacity of a scale set."""
_API_VERSION = re.compile(r"^20\d\d-\d\d-\d\d(-preview)?$")
_FILTER = re.compile(r"^location eq '([a-z0-9]+)'$")
SIZES: dict[str, dict[str, str]] = {
    "Standard_D4s_v5": {"vCPUs": "4", "MemoryGB": "16", "MaxDataDiskCount": "8"},
    "Standard_E4-2s_v5": {"vCPUs": "4", "vCPUsAvailable": "2", "MemoryGB": "32"},
    "Standard_D4ps_v5": {"vCPUs": "4", "MemoryGB": "16", "CpuArchitectureType": "Arm64"},
    "Standard_NC6s_v3": {"vCPUs": "6", "MemoryGB": "112", "GPUs": "1"},
    "Standard_NP10s": {"vCPUs": "10", "MemoryGB": "168", "GPUs": "1"},
    "Standard_New9": {"vCPUs": "9", "MemoryGB": "3.5", "MaxDataDiskCount": "6"},
    "Standard_New10": {"vCPUs": "9", "MemoryGB": "3.5"},
    "Standard_Odd": {"vCPUs": "many", "MemoryGB": "3.5"},
}

Trouble = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Answers a request instead of Azure; None lets it through."""


@dataclass
class FakeVm:
    """An instance of a scale set."""

    id: str
    state: str = "Creating"
    code: str = ""
    """The code of its failure."""
    message: str = ""
    power: str = ""


@dataclass
class FakeScaleSet:
    """A scale set."""

    name: str
    capacity: int = 0
    size: str = "Standard_D4s_v5"
    tags: dict[str, str] = field(default_factory=dict)
    zones: list[str] = field(default_factory=list)
    mode: str = "Uniform"
    profile: dict[str, Any] = field(default_factory=dict)
    state: str = "Succeeded"
    error: tuple[str, str] = ("", "")
    """Code and message of its failure."""
    fails: tuple[str, str] = ("", "")
    """Code and message with which new instances fail."""
    never_comes: int = 0
    """How many new instances are never listed."""
    vms: dict[str, FakeVm] = field(default_factory=dict)
    version: int = 1
    next_id: int = 0

    @property
    def etag(self) -> str:
        return f'"{self.version}"'

    def active(self) -> list[FakeVm]:
        return [one for one in self.vms.values() if one.state != "Deleting"]

    def create(self) -> None:
        """Begin to create what is missing to the capacity."""
        missing = self.capacity - len(self.active())
        hidden = min(missing, self.never_comes)
        self.never_comes -= hidden
        for _ in range(missing - hidden):
            self.vms[str(self.next_id)] = FakeVm(str(self.next_id))
            self.next_id += 1

    def settle(self) -> None:
        """Finish what was begun."""
        for one in list(self.vms.values()):
            if one.state == "Deleting":
                del self.vms[one.id]
            elif one.state == "Creating" and self.fails[0]:
                one.state, (one.code, one.message) = "Failed", self.fails
            elif one.state == "Creating":
                one.state, one.power = "Succeeded", "running"
        self.state = "Failed" if self.error[0] else "Succeeded"


@dataclass
class FakeAzure:
    """A subscription with one resource group."""

    url: str = ""
    sets: dict[str, FakeScaleSet] = field(default_factory=dict)
    quota: int = 10**6
    """How many instances all scale sets may have."""
    page: int = 100
    asked: list[str] = field(default_factory=list)
    """The operations, as they came."""
    deleted: list[str] = field(default_factory=list)
    """`scale-set/id` of every deletion that was accepted."""
    lowered: list[str] = field(default_factory=list)
    """Scale sets whose capacity was lowered through a resize."""
    troubles: dict[str, Trouble] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by every answer."""

    def scale_set(self, name: str = "workers", size: int = 0, **fields: Any) -> FakeScaleSet:
        """Make a scale set with running instances."""
        made = FakeScaleSet(name, size, **fields)
        made.create()
        made.settle()
        self.sets[name.lower()] = made
        return made

    def settle(self) -> None:
        for one in self.sets.values():
            one.settle()

    def fails(
        self,
        operation: str,
        code: str,
        status: int = 400,
        *,
        times: int = 10**6,
        message: str = "no",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Refuse an operation, so many times."""
        left = [times]

        async def trouble(_: web.Request) -> web.Response | None:
            left[0] -= 1
            return refusal(code, status, message, headers) if left[0] >= 0 else None

        self.troubles[operation] = trouble

    def says(self, operation: str, body: str, content_type: str = "application/json") -> None:
        """Answer an operation with that."""

        async def trouble(_: web.Request) -> web.Response:
            return web.Response(text=body, content_type=content_type)

        self.troubles[operation] = trouble

    def hangs(self, operation: str) -> None:
        """Never answer an operation."""

        async def trouble(_: web.Request) -> web.Response:
            await asyncio.Event().wait()
            return web.Response()

        self.troubles[operation] = trouble

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        operation, act = self._operation(request)
        self.asked.append(operation)
        trouble = self.troubles.get(operation) or self.troubles.get("*")
        if trouble is not None:
            instead = await trouble(request)
            if instead is not None:
                return instead
        wrong = _wrong(request)
        answer = wrong if wrong is not None else await act(request)
        self.news.set()
        return answer

    def _operation(
        self, request: web.Request
    ) -> tuple[str, Callable[[web.Request], Awaitable[web.Response]]]:
        path, method = request.path.lower(), request.method
        known: list[tuple[str, str, str, Callable[[web.Request], Awaitable[web.Response]]]] = [
            ("GET", "/skus", "skus", self._skus),
            ("GET", "/virtualmachines", "vms", self._vms),
            ("GET", "/instanceview", "view", self._view),
            ("POST", "/delete", "delete", self._delete),
            ("GET", "/virtualmachinescalesets", "list", self._list),
            ("PATCH", "", "resize", self._resize),
            ("GET", "", "get", self._get),
        ]
        for wanted, end, operation, act in known:
            if method == wanted and path.endswith(end):
                return operation, act
        return "unknown", self._unknown

    def _found(self, request: web.Request) -> FakeScaleSet | web.Response:
        name = request.path.lower().partition("/virtualmachinescalesets/")[2].partition("/")[0]
        one = self.sets.get(name)
        if one is None:
            return refusal("ResourceNotFound", 404, f"The Resource '{name}' was not found.")
        return one

    async def _unknown(self, request: web.Request) -> web.Response:
        return refusal("MethodNotAllowed", 405, f"{request.method} {request.path}")

    async def _list(self, request: web.Request) -> web.Response:
        items = [_described(one) for _, one in sorted(self.sets.items())]
        return self._paged(request, items)

    async def _get(self, request: web.Request) -> web.Response:
        one = self._found(request)
        return one if isinstance(one, web.Response) else web.json_response(_described(one))

    async def _view(self, request: web.Request) -> web.Response:
        one = self._found(request)
        if isinstance(one, web.Response):
            return one
        code, message = one.error
        state = f"failed/{code}" if code else "succeeded"
        status = {"code": f"ProvisioningState/{state}", "level": "Error", "message": message}
        return web.json_response({"statuses": [status]})

    async def _vms(self, request: web.Request) -> web.Response:
        one = self._found(request)
        if isinstance(one, web.Response):
            return one
        if request.query.get("$expand", "instanceView") != "instanceView":
            return refusal("InvalidParameter", 400, "$expand")
        if one.mode != "Uniform":
            return refusal("OperationNotAllowed", 409, "not of a Flexible scale set")
        full = "$expand" in request.query
        return self._paged(request, [_described_vm(one, vm, full) for vm in one.vms.values()])

    async def _skus(self, request: web.Request) -> web.Response:
        found = _FILTER.match(request.query.get("$filter", ""))
        if found is None:
            return refusal("InvalidFilter", 400, "only location eq '…' is supported")
        items: list[dict[str, Any]] = [{"resourceType": "disks", "name": "Premium_LRS"}]
        if found[1] == LOCATION:
            items += [_sku(name, known) for name, known in SIZES.items()]
        return self._paged(request, items)

    async def _resize(self, request: web.Request) -> web.Response:
        one = self._found(request)
        if isinstance(one, web.Response):
            return one
        if request.headers.get("If-Match", one.etag) != one.etag:
            return refusal("PreconditionFailed", 412, "The etag does not match.")
        body = await _body(request)
        wrong = self._wrong_resize(one, body)
        if wrong is not None:
            return wrong
        capacity = body["sku"]["capacity"]
        if capacity < one.capacity:
            self.lowered.append(one.name)
        one.capacity, one.state, one.version = capacity, "Updating", one.version + 1
        one.create()
        # Azure chooses what is deleted, if the capacity is lowered.
        for vm in one.active()[: max(0, len(one.active()) - capacity)]:
            vm.state = "Deleting"
        return web.json_response(_described(one))

    def _wrong_resize(self, one: FakeScaleSet, body: Any) -> web.Response | None:
        if not isinstance(body, dict) or set(body) != {"sku"}:
            return refusal("InvalidRequestContent", 400, "only the sku can be changed here")
        sku = body["sku"]
        capacity = sku.get("capacity") if isinstance(sku, dict) else None
        if not isinstance(capacity, int) or not set(sku) <= {"name", "tier", "capacity"}:
            return refusal("InvalidRequestContent", 400, "the sku is invalid")
        if sku.get("name", one.size) != one.size:
            return refusal("PropertyChangeNotAllowed", 409, "sku.name")
        if not 0 <= capacity <= MOST:
            return refusal("InvalidParameter", 400, f"capacity must be between 0 and {MOST}")
        others = sum(other.capacity for other in self.sets.values() if other is not one)
        if others + capacity > self.quota:
            text = "Operation could not be completed as it results in exceeding approved quota."
            return refusal("OperationNotAllowed", 409, text)
        return None

    async def _delete(self, request: web.Request) -> web.Response:
        one = self._found(request)
        if isinstance(one, web.Response):
            return one
        body = await _body(request)
        wanted = body.get("instanceIds") if isinstance(body, dict) else None
        if not wanted or not isinstance(wanted, list) or set(body) != {"instanceIds"}:
            return refusal("InvalidRequestContent", 400, "instanceIds are required")
        unknown = [name for name in wanted if name not in one.vms]
        if unknown:
            text = f"The provided instanceId {unknown[0]} is not an active instanceId."
            return refusal("InvalidParameter", 400, text)
        for name in wanted:
            self.deleted.append(f"{one.name}/{name}")
            one.capacity -= one.vms[name].state != "Deleting"
            one.vms[name].state = "Deleting"
        one.state, one.version = "Updating", one.version + 1
        return web.Response(status=202, headers={"Location": f"{self.url}/operations/1"})

    def _paged(self, request: web.Request, items: list[dict[str, Any]]) -> web.Response:
        start = int(request.query.get("$skiptoken", "0"))
        body: dict[str, Any] = {"value": items[start : start + self.page]}
        if start + self.page < len(items):
            query = {**request.query, "$skiptoken": str(start + self.page)}
            body["nextLink"] = self.url + str(request.rel_url.with_query(query))
        return web.json_response(body)


def _wrong(request: web.Request) -> web.Response | None:
    """What is refused of every request."""
    if request.headers.get("Authorization") != f"Bearer {TOKEN}":
        return refusal("AuthenticationFailed", 401, "no token")
    if "api-version" not in request.query:
        return refusal("MissingApiVersionParameter", 400)
    if not _API_VERSION.match(request.query["api-version"]):
        return refusal("InvalidApiVersionParameter", 400)
    parts = request.path.lower().split("/")
    if parts[1:3] != ["subscriptions", SUBSCRIPTION]:
        return refusal("SubscriptionNotFound", 404)
    if parts[3] == "resourcegroups" and parts[4] != GROUP.lower():
        return refusal("ResourceGroupNotFound", 404)
    return None


async def _body(request: web.Request) -> Any:
    try:
        return json.loads(await request.read())
    except ValueError:
        return None


def prefix(name: str, group: str = GROUP) -> str:
    """The resource ID of a scale set."""
    provider = "providers/Microsoft.Compute/virtualMachineScaleSets"
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/{provider}/{name}"


def node_id(name: str, instance: str) -> str:
    """The provider ID of an instance's node."""
    return f"azure://{prefix(name, GROUP.lower())}/virtualMachines/{instance}"


def _described(one: FakeScaleSet) -> dict[str, Any]:
    return {
        "id": prefix(one.name),
        "name": one.name,
        "location": LOCATION,
        "etag": one.etag,
        "tags": one.tags or None,
        "sku": {"name": one.size, "tier": "Standard", "capacity": one.capacity},
        **({"zones": one.zones} if one.zones else {}),
        "properties": {
            "provisioningState": one.state,
            "orchestrationMode": one.mode,
            "virtualMachineProfile": one.profile,
        },
    }


def _described_vm(one: FakeScaleSet, vm: FakeVm, full: bool) -> dict[str, Any]:
    state = vm.state.lower() + (f"/{vm.code}" if vm.code else "")
    statuses = [{"code": f"ProvisioningState/{state}", "message": vm.message}]
    statuses += [{"code": f"PowerState/{vm.power}"}] if vm.power else []
    view = {"instanceView": {"statuses": statuses}} if full else {}
    return {
        # Azure writes the resource group in capitals here, and elsewhere as it was made.
        "id": f"{prefix(one.name, GROUP.upper())}/virtualMachines/{vm.id}",
        "instanceId": vm.id,
        "name": f"{one.name}_{vm.id}",
        "properties": {"provisioningState": vm.state, **view},
    }


def _sku(name: str, known: dict[str, str]) -> dict[str, Any]:
    capabilities = [{"name": key, "value": value} for key, value in known.items()]
    return {
        "resourceType": "virtualMachines",
        "name": name,
        "locations": [LOCATION],
        "capabilities": capabilities,
    }


def refusal(
    code: str, status: int, message: str = "no", headers: dict[str, str] | None = None
) -> web.Response:
    """An error in Azure's format."""
    body = {"error": {"code": code, "message": message}}
    return web.json_response(body, status=status, headers=headers)


@asynccontextmanager
async def serve_azure() -> AsyncIterator[FakeAzure]:
    """Azure, while the context lasts."""
    azure = FakeAzure()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", azure.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        azure.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield azure
    finally:
        await runner.cleanup()
