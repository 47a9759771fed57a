"""A registry with its mirrors, as the puller sees it: resolve names, read documents, fetch blobs.

Every question goes to the hosts in turn until one answers well; the last host is the registry
itself, and its error is the one reported. Documents are verified here; blobs by their sink.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import aiohttp
import msgspec

from bayplan.images.registry.credentials import Credentials, Keyring
from bayplan.images.registry.download import Opener, Pace, Sink, download
from bayplan.images.registry.errors import (
    IntegrityError,
    NotFoundError,
    PullError,
    Retrier,
    TransientError,
)
from bayplan.images.registry.hosts import Host, hosts_for
from bayplan.images.registry.media import ACCEPT, MANIFEST_LIMIT, Descriptor
from bayplan.images.registry.transport import Request, Transport
from bayplan.kube.imagereferences import DEFAULT_REGISTRY, ImageReference, is_digest

_ADDRESS_LIMIT = 5
_Result = TypeVar("_Result")


class Login(msgspec.Struct, frozen=True):
    """The credentials a pull may use, and for whom."""

    credentials: Credentials | None = None  # as the request gave them
    server: str = ""  # the only host they are for; empty means the image's registry
    keyring: Keyring[Credentials] = Keyring()

    def for_host(self, host: Host, reference: ImageReference) -> Credentials | None:
        """Choose what to show a host; mirrors never see what is the registry's."""
        if self.credentials and self._meant_for(host, reference):
            return self.credentials
        name = host.authority if host.mirror else reference.registry
        return next(filter(None, self.keyring.lookup(name, reference.path)), None)

    def _meant_for(self, host: Host, reference: ImageReference) -> bool:
        server = self.server.partition("://")[2] if "://" in self.server else self.server
        # A port that goes without saying is the same as one that is said.
        server, authority, registry = (
            name.partition("/")[0].removesuffix(host.default_port)
            for name in (server, host.authority, reference.registry)
        )
        if host.mirror:
            return server == authority
        aliases = {"index.docker.io"} if registry == DEFAULT_REGISTRY else set()
        return server in {"", registry, authority} | aliases


class Source(msgspec.Struct, frozen=True):
    """An image's name, and how to log in where it lives."""

    reference: ImageReference
    login: Login = Login()

    def request(
        self, method: str, host: Host, path: str, headers: dict[str, str] | None = None
    ) -> Request:
        """Ask a host for something of this image's repository."""
        repository = self.reference.path
        credentials = self.login.for_host(host, self.reference)
        query = {"ns": self.reference.registry} if host.mirror else {}
        path = f"{repository}/{path}"
        return Request(method, host, repository, path, credentials, headers or {}, query)


class Document(msgspec.Struct, frozen=True):
    """A manifest or index, verified."""

    digest: str
    media_type: str
    data: bytes


class VerifyingSink(Sink, Protocol):
    """A sink that knows what it should have received."""

    def verify(self) -> None:
        """Raise if the bytes are not those of the digest."""


class RegistryClient:
    """Asks registries, through mirrors where there are any."""

    def __init__(
        self,
        transport: Transport,
        retrier: Retrier,
        pace: Pace,
        hosts_directory: Path | None = None,
    ) -> None:
        self._transport = transport
        self._retrier = retrier
        self._pace = pace
        self._hosts_directory = hosts_directory

    async def resolve(self, source: Source) -> str | None:
        """Ask which digest a name stands for; nothing if the registry does not say.

        A digest is asked for as well: content that is here already must not open to who could not
        have it from the registry, in that repository and with those credentials.
        """
        reference = source.reference

        async def ask(host: Host) -> str | None:
            path = f"manifests/{reference.target}"
            request = source.request("HEAD", host, path, {"Accept": ACCEPT})
            async with self._in_time(path), self._transport.send(request) as response:
                digest = reference.digest or response.headers.get("Docker-Content-Digest", "")
                return digest if is_digest(digest) else None

        return await self._each_host(source, "resolve", ask)

    async def document(self, source: Source, target: str) -> Document:
        """Fetch a manifest or index by tag or digest."""

        async def ask(host: Host) -> Document:
            request = source.request("GET", host, f"manifests/{target}", {"Accept": ACCEPT})
            async with self._in_time(target), self._transport.send(request) as response:
                data = await _bounded(response, target)
                media_type = response.headers.get("Content-Type", "")
                return Document(_verified(data, target), media_type, data)

        return await self._each_host(source, "pull" if is_digest(target) else "resolve", ask)

    async def holds(self, source: Source, digest: str) -> bool:
        """Ask whether the image's repository has a blob; whoever cannot say has none."""

        async def ask(host: Host) -> bool:
            request = source.request("HEAD", host, f"blobs/{digest}")
            async with self._in_time(digest), self._transport.send(request):
                return True

        try:
            return await self._each_host(source, "pull", ask)
        except PullError:
            return False

    async def blob(self, source: Source, descriptor: Descriptor, sink: VerifyingSink) -> None:
        """Stream a blob into a sink; foreign layers from their own addresses if need be."""

        async def ask(host: Host) -> None:
            path = f"blobs/{descriptor.digest}"
            await self._stream(
                lambda headers: self._transport.send(source.request("GET", host, path, headers)),
                descriptor,
                sink,
            )

        try:
            await self._each_host(source, "pull", ask)
        except NotFoundError:
            if not descriptor.urls:
                raise
            await self._foreign(source, descriptor, sink)

    async def _foreign(self, source: Source, descriptor: Descriptor, sink: VerifyingSink) -> None:
        # A manifest's addresses may lead where a redirect of its registry could.
        base = self._hosts(source.reference.registry)[-1].base
        failure: PullError = NotFoundError(f"{descriptor.digest} has no address over HTTP")
        for url in descriptor.urls[:_ADDRESS_LIMIT]:
            if not url.startswith(("https://", "http://")):
                continue
            try:
                return await self._stream(self._foreign_opener(base, url), descriptor, sink)
            except PullError as error:
                failure = error
        raise failure

    def _foreign_opener(self, base: str, url: str) -> Opener:
        request = Request("GET", Host(base), "", url)
        return lambda headers: self._transport.send(
            msgspec.structs.replace(request, headers=headers)
        )

    async def _stream(self, opener: Opener, descriptor: Descriptor, sink: VerifyingSink) -> None:
        """Deliver the rest; if the whole is wrong, what was there may have been: once more."""
        continued = sink.received > 0
        try:
            await self._deliver(opener, descriptor, sink)
        except IntegrityError:
            sink.restart()
            if not continued:
                raise
            await self._deliver(opener, descriptor, sink)

    async def _deliver(self, opener: Opener, descriptor: Descriptor, sink: VerifyingSink) -> None:
        await download(opener, sink, descriptor.size, self._retrier, self._pace)
        sink.verify()

    @contextlib.asynccontextmanager
    async def _in_time(self, target: str) -> AsyncIterator[None]:
        """Bound what a server may drip: the whole of a small answer, not only its next byte."""
        seconds = self._transport.timeouts.document
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise TransientError(f"no whole answer about {target} in {seconds:g} s") from None

    def _hosts(self, registry: str) -> list[Host]:
        try:
            return hosts_for(registry, self._hosts_directory)
        except (ValueError, OSError) as error:
            raise PullError(f"the mirrors of {registry} cannot be read: {error}") from error

    async def _each_host(
        self, source: Source, capability: str, ask: Callable[[Host], Awaitable[_Result]]
    ) -> _Result:
        registry = source.reference.registry
        failures: list[PullError] = []
        for host in self._hosts(registry):
            if capability not in host.capabilities:
                continue
            try:
                return await self._retrier.run(partial(ask, host))
            except PullError as error:
                failures.append(error)
        if not failures:
            raise PullError(f"no host of {registry} is allowed to {capability}")
        for mirror_failure in failures[:-1]:
            failures[-1].add_note(f"before that, a mirror: {mirror_failure}")
        raise failures[-1]


async def _bounded(response: aiohttp.ClientResponse, target: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > MANIFEST_LIMIT:
            raise IntegrityError(f"manifest {target} is larger than {MANIFEST_LIMIT} bytes")
    return bytes(body)


def _verified(data: bytes, target: str) -> str:
    if not is_digest(target):
        return f"sha256:{hashlib.sha256(data).hexdigest()}"
    algorithm = target.partition(":")[0]
    actual = f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"
    if actual != target:
        raise IntegrityError(f"manifest {target} came with the digest {actual}")
    return actual
