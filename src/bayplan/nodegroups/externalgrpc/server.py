"""Serves a provider to other processes: on a unix socket, over TLS, or both.

    async with serve(provider, ListenAddresses(socket=Path("/run/cloud.sock"))):
        ...

Only the owner may connect to the socket. Over TLS a client must present a certificate if a client
CA is configured.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket as sockets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from bayplan.nodegroups.errors import ProviderUnavailableError
from bayplan.nodegroups.externalgrpc import externalgrpc_pb2 as pb
from bayplan.nodegroups.externalgrpc.convert import code_of
from bayplan.nodegroups.externalgrpc.service import CloudProviderServicer
from bayplan.nodegroups.provider import Provider

SERVICE = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
_GRACE_SECONDS = 1.0
_PRIVATE = 0o177
_MAX_SOCKET_PATH = 107
_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response", bound=Message)
_Context = grpc.aio.ServicerContext[Message, Message]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tls:
    """A server's certificate and key, and the CA of its clients, as PEM."""

    certificate: bytes
    key: bytes
    clients: bytes = b""
    """The CA of client certificates; without it clients are not authenticated."""


@dataclass(frozen=True, slots=True)
class ListenAddresses:
    """The addresses to listen on."""

    socket: Path | None = None
    host: str = ""
    port: int = 0
    """0 chooses a free one."""
    tls: Tls | None = None
    """With a host."""


@contextlib.asynccontextmanager
async def serve(provider: Provider, places: ListenAddresses) -> AsyncIterator[int]:
    """Serve while the context lasts; yields the port. ProviderUnavailableError if an address is in
    use.
    """
    server = grpc.aio.server(handlers=[_handlers(CloudProviderServicer(provider))])
    port = _listen(server, places)
    if places.socket is not None:
        _remove_stale_socket(places.socket)
        _listen_locally(server, places.socket)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(_GRACE_SECONDS)
        if places.socket is not None:
            places.socket.unlink(missing_ok=True)


def _listen(server: grpc.aio.Server, places: ListenAddresses) -> int:
    if places.tls is None:
        return 0
    credentials = grpc.ssl_server_credentials(
        [(places.tls.key, places.tls.certificate)],
        root_certificates=places.tls.clients or None,
        require_client_auth=bool(places.tls.clients),
    )
    host = f"[{places.host}]" if ":" in places.host else places.host
    try:
        return int(server.add_secure_port(f"{host}:{places.port}", credentials))
    except RuntimeError as problem:
        raise ProviderUnavailableError(
            f"{host}:{places.port}: cannot listen on this address"
        ) from problem


def _listen_locally(server: grpc.aio.Server, socket: Path) -> None:
    before = os.umask(_PRIVATE)
    try:
        server.add_insecure_port(f"unix:{socket}")
    except RuntimeError as problem:
        raise ProviderUnavailableError(f"{socket}: cannot listen on this address") from problem
    finally:
        os.umask(before)


def _remove_stale_socket(socket: Path) -> None:
    """Remove a socket that a dead process left behind; refuse anything else."""
    if len(os.fsencode(socket)) > _MAX_SOCKET_PATH:
        raise ProviderUnavailableError(
            f"{socket}: the path of a socket has at most {_MAX_SOCKET_PATH} bytes"
        )
    if not socket.exists():
        return
    with contextlib.closing(sockets.socket(sockets.AF_UNIX)) as probe:
        if not socket.is_socket() or probe.connect_ex(str(socket)) == 0:
            raise ProviderUnavailableError(f"{socket}: exists and is in use")
    socket.unlink()


def _handlers(service: CloudProviderServicer) -> grpc.GenericRpcHandler[Message, Message]:
    answers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "NodeGroups": _unary(service.node_groups, pb.NodeGroupsRequest),
        "NodeGroupForNode": _unary(service.group_for_node, pb.NodeGroupForNodeRequest),
        "PricingNodePrice": _unary(service.node_price, pb.PricingNodePriceRequest),
        "PricingPodPrice": _unary(service.pod_price, pb.PricingPodPriceRequest),
        "GPULabel": _unary(service.gpu_label, pb.GPULabelRequest),
        "GetAvailableGPUTypes": _unary(service.gpu_types, pb.GetAvailableGPUTypesRequest),
        "Cleanup": _unary(service.cleanup, pb.CleanupRequest),
        "Refresh": _unary(service.refresh, pb.RefreshRequest),
        "NodeGroupTargetSize": _unary(service.target_size, pb.NodeGroupTargetSizeRequest),
        "NodeGroupIncreaseSize": _unary(service.increase, pb.NodeGroupIncreaseSizeRequest),
        "NodeGroupDeleteNodes": _unary(service.delete_nodes, pb.NodeGroupDeleteNodesRequest),
        "NodeGroupDecreaseTargetSize": _unary(
            service.decrease_target, pb.NodeGroupDecreaseTargetSizeRequest
        ),
        "NodeGroupNodes": _unary(service.instances, pb.NodeGroupNodesRequest),
        "NodeGroupTemplateNodeInfo": _unary(service.template, pb.NodeGroupTemplateNodeInfoRequest),
        "NodeGroupGetOptions": _unary(service.options, pb.NodeGroupAutoscalingOptionsRequest),
    }
    return grpc.method_handlers_generic_handler(SERVICE, answers)


def _unary(
    answer: Callable[[_Request], Awaitable[_Response]], kind: type[_Request]
) -> grpc.RpcMethodHandler[_Request, _Response]:
    async def call(request: _Request, context: _Context) -> _Response:
        try:
            return await answer(request)
        except Exception as error:
            code = code_of(error)
            if code is grpc.StatusCode.INTERNAL:
                log.exception("provider call failed")
            await context.abort(code, str(error))

    return grpc.unary_unary_rpc_method_handler(
        call, request_deserializer=kind.FromString, response_serializer=_serialize
    )


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
