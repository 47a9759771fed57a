"""Compute Engine's API through google-cloud-compute, in threads: limited in number and time.

The library is blocking, and imported only here. Each call is one request; retries are made here,
with the clock that is handed in. A write carries a request ID, the same in each retry: Compute
Engine acts once, however often it is sent. It returns an operation that ends later; it is polled
until it is done, and its errors become the provider's, as those of responses, with their code and
the beginning of the message.

Instance templates hold the secrets of kubelets in their metadata. The library's debug log would
show them; it stays off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from bayplan.autoscaler.providers.gce.api_types import ComputeOperation, converted
from bayplan.autoscaler.providers.gce.refs import MigRef
from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RefusedError,
)

T = TypeVar("T")
_RATE = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "concurrentLimitExceeded"})
_LATER = frozenset({"resourceNotReady", "backendError", "internalError"})
_NO_QUOTA = frozenset({"quotaExceeded", "limitExceeded", "dailyLimitExceeded"})
_BY_STATUS: Mapping[int, type[NodeGroupError]] = {
    400: InvalidRequestError,
    404: NodeGroupNotFoundError,
    409: ProviderUnavailableError,
    429: ProviderUnavailableError,
}
_LONGEST = 300


def error_from(status: int, code: str, message: str) -> NodeGroupError:
    """Return the provider's error for one of Compute Engine's, by its status and code."""
    return _kind(status, code)(f"Compute Engine: {code or status}: {message.strip()[:_LONGEST]}")


def _kind(status: int, code: str) -> type[NodeGroupError]:
    if code in _RATE | _LATER or status >= 500:
        return ProviderUnavailableError
    if code in _NO_QUOTA or "QUOTA" in code:
        return QuotaExceededError
    if code.endswith("NOT_FOUND"):
        return NodeGroupNotFoundError
    return _BY_STATUS.get(status, RefusedError)


THREADS = 4
PAGES = 1000
PAGE_SIZE = 500
"""Compute Engine's maximum number of items in a page."""
TRIES = 4
PAUSE = 0.5
"""Seconds before a request is sent again; doubled each time."""
_NOISY = ("google", "urllib3", "requests")


class ScopeNames(NamedTuple):
    """The library's names for groups in zones, or in regions."""

    managers: str
    operations: str
    parameter: str
    deletion: str


_NAMES = {
    "zones": ScopeNames(
        "InstanceGroupManagersClient",
        "ZoneOperationsClient",
        "zone",
        "instance_group_managers_delete_instances_request_resource",
    ),
    "regions": ScopeNames(
        "RegionInstanceGroupManagersClient",
        "RegionOperationsClient",
        "region",
        "region_instance_group_managers_delete_instances_request_resource",
    ),
}


@dataclass(frozen=True, slots=True)
class GceTimeouts:
    """Timeouts of calls to Compute Engine, in seconds."""

    request: float = 10.0
    """For one request, without a byte of its response."""
    whole: float = 25.0
    """For a call with all its retries, and for an operation."""
    poll: float = 1.0
    """Between two polls of an operation."""


@dataclass(frozen=True, slots=True)
class GceSession:
    """Who calls, for which project and where."""

    credentials: Any
    project: str
    host: str = ""
    """Where the API is, without a scheme; Google's own if it is empty."""
    scheme: str = "https"


class GceSdk:
    """Calls Compute Engine; `close` it when done."""

    def __init__(
        self, session: GceSession, clock: Clock, rng: Random, limits: GceTimeouts | None = None
    ) -> None:
        self.project = session.project
        self._clock = clock
        self._rng = rng
        self._limits = limits or GceTimeouts()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gce")
        self._client = _clients(session)

    async def read(self, client: str, method: str, kind: type[T], **params: object) -> T:
        """Read one object."""
        return converted(await self._call(client, method, params, _plain), kind)

    async def read_all(self, client: str, method: str, kind: type[T], **params: object) -> list[T]:
        """Read all pages of a list."""
        request = {**params, "max_results": PAGE_SIZE}
        found: list[T] = []
        for _ in range(PAGES):
            page = await self._call(client, method, request, _page)
            found.append(converted(page, kind))
            token = page.get("next_page_token")
            if not token:
                return found
            request = {**request, "page_token": token}
        raise ProviderUnavailableError(f"{method}: more than {PAGES} pages")

    async def read_group(self, ref: MigRef, kind: type[T]) -> T:
        """Read a managed instance group."""
        return await self.read(_NAMES[ref.scope].managers, "get", kind, **_place(ref))

    async def read_members(self, ref: MigRef, kind: type[T]) -> list[T]:
        """Read the pages of a group's managed instances."""
        client = _NAMES[ref.scope].managers
        return await self.read_all(client, "list_managed_instances", kind, **_place(ref))

    async def resize(self, ref: MigRef, size: int) -> None:
        """Set a group's target size."""
        await self._write(ref, "resize_unary", size=size)

    async def delete_instances(self, ref: MigRef, urls: Sequence[str]) -> None:
        """Delete instances of a group, which lowers its target size by as many.

        Compute Engine skips those that it is deleting already, or that are not in the group.
        """
        body = {"instances": list(urls), "skip_instances_on_validation_error": True}
        names = _NAMES[ref.scope]
        await self._write(ref, "delete_instances_unary", **{names.deletion: body})

    async def _write(self, ref: MigRef, method: str, **params: object) -> None:
        """Change a group, and wait until the operation is done."""
        identity = str(UUID(int=self._rng.getrandbits(128), version=4))
        request = {**_place(ref), **params, "request_id": identity}
        answer = await self._call(_NAMES[ref.scope].managers, method, request, _plain)
        operation = await self._finish(ref, converted(answer, ComputeOperation))
        for error in operation.errors:
            raise error_from(operation.http_error_status_code, error.code, error.message)

    async def _finish(self, ref: MigRef, operation: ComputeOperation) -> ComputeOperation:
        names = _NAMES[ref.scope]
        place = {"project": ref.project, names.parameter: ref.location, "operation": operation.name}
        until = self._clock.monotonic() + self._limits.whole
        while not operation.is_done:
            if self._clock.monotonic() >= until:
                message = f"operation {operation.name} is not done in {self._limits.whole:g}s"
                raise ProviderUnavailableError(f"Compute Engine: {message}")
            await self._clock.sleep(self._limits.poll)
            operation = await self.read(names.operations, "get", ComputeOperation, **place)
        return operation

    async def _call(
        self,
        client: str,
        method: str,
        request: Mapping[str, object],
        read: Callable[[Any], dict[str, Any]],
    ) -> dict[str, Any]:
        call = getattr(self._client(client), method)
        options = {"retry": None, "timeout": self._limits.request}
        return await self._retried(lambda: read(call(dict(request), **options)))

    def close(self) -> None:
        """Start no more calls; those in progress end by their timeouts."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _retried(self, work: Callable[[], T]) -> T:
        """Run a request, and again while Compute Engine is not available."""
        pause = PAUSE
        try:
            async with asyncio.timeout(self._limits.whole):
                for _ in range(TRIES - 1):
                    try:
                        return await self._run(work)
                    except ProviderUnavailableError:
                        await self._clock.sleep(pause * self._rng.uniform(0.5, 1.5))
                        pause *= 2
                return await self._run(work)
        except TimeoutError:
            message = f"Compute Engine did not answer in {self._limits.whole:g}s"
            raise ProviderUnavailableError(message) from None

    async def _run(self, work: Callable[[], T]) -> T:
        with _translated():
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _place(ref: MigRef) -> dict[str, object]:
    where = {_NAMES[ref.scope].parameter: ref.location}
    return {"project": ref.project, **where, "instance_group_manager": ref.name}


def _plain(message: Any) -> dict[str, Any]:
    """Return a message's fields; those that are not set are left out."""
    found: dict[str, Any] = type(message).to_dict(
        message, use_integers_for_enums=False, always_print_fields_with_no_presence=False
    )
    return found


def _page(pager: Any) -> dict[str, Any]:
    """Return the page that a call has read; further ones are read by calls of their own."""
    return _plain(next(iter(pager.pages)))


@contextmanager
def _translated() -> Iterator[None]:
    """Raise the library's errors as the provider's."""
    from google.api_core.exceptions import GoogleAPICallError  # noqa: PLC0415 - only for GCE
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
    from google.protobuf.json_format import Error as JsonError  # noqa: PLC0415
    from requests import RequestException  # noqa: PLC0415

    try:
        yield
    except GoogleAPICallError as error:
        raise _from_response(error) from error
    except (RequestException, GoogleAuthError) as error:
        # Their texts may quote a URL or a token's response.
        message = f"cannot call Compute Engine: {type(error).__name__}"
        raise ProviderUnavailableError(message) from None
    except (JsonError, LookupError, TypeError, ValueError, AttributeError) as error:
        # The library parses a response that is not Compute Engine's without validating it.
        message = f"Compute Engine's answer cannot be read: {type(error).__name__}"
        raise ProviderUnavailableError(message) from None


def _from_response(error: Any) -> NodeGroupError:
    first = next((one for one in error.errors or () if isinstance(one, dict)), {})
    message = str(first.get("message", "no reason is given"))
    return error_from(int(error.code or 0), str(first.get("reason", "")), message)


def _clients(session: GceSession) -> Callable[[str], Any]:
    """Return a function for the clients by name, which any thread can use."""
    from google.cloud import compute_v1  # noqa: PLC0415 - only who uses GCE needs it

    made: dict[str, Any] = {}

    def client(name: str) -> Any:
        if name not in made:
            made[name] = _new_client(getattr(compute_v1, name), session)
        return made[name]

    return client


def _new_client(kind: Any, session: GceSession) -> Any:
    if not session.host:
        return kind(credentials=session.credentials, transport="rest")
    transport = kind.get_transport_class("rest")(
        host=session.host, credentials=session.credentials, url_scheme=session.scheme
    )
    return kind(transport=transport)


def new_session() -> GceSession:
    """Return the application default credentials and project; ProviderOptionError if none."""
    try:
        import google.auth  # noqa: PLC0415 - only who uses GCE needs it
        import google.cloud.compute_v1  # noqa: PLC0415
    except ImportError:
        raise ProviderOptionError(
            "--cloud-provider gce: google-cloud-compute is not installed; install bayplan[gce]"
        ) from None
    for name in _NOISY:
        logger = logging.getLogger(name)
        logger.setLevel(max(logging.INFO, logger.level))
    try:
        credentials, project = google.auth.default(
            scopes=["https://www.googleapis.com/auth/compute"]
        )
    except google.auth.exceptions.DefaultCredentialsError:
        raise ProviderOptionError(
            "--cloud-provider gce: there are no application default credentials; set"
            " GOOGLE_APPLICATION_CREDENTIALS, or run with a service account"
        ) from None
    return GceSession(credentials, str(project or ""))
