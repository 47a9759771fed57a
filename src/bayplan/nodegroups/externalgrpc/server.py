"""Lets other processes ask a provider: on a unix socket, over TLS, or both.

    async with serve(provider, Places(socket=Path("/run/cloud.sock"))):
        ...

Only the owner may connect to the socket. Over TLS a client must show a certificate if it is said
whose are good.
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

from bayplan.nodegroups.errors import UnavailableError
from bayplan.nodegroups.externalgrpc import externalgrpc_pb2 as pb
from bayplan.nodegroups.externalgrpc.convert import code_of
from bayplan.nodegroups.externalgrpc.service import Service
from bayplan.nodegroups.provider import Provider

SERVICE = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
_GRACE_SECONDS = 1.0
_PRIVATE = 0o177
_LONGEST = 107
_Asked = TypeVar("_Asked", bound=Message)
_Told = TypeVar("_Told", bound=Message)
_Context = grpc.aio.ServicerContext[Message, Message]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tls:
    """A server's certificate and its key, and who may ask; as PEM."""

    certificate: bytes
    key: bytes
    clients: bytes = b""
    """The authority of clients' certificates; without it anybody may ask."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where to serve."""

    socket: Path | None = None
    host: str = ""
    port: int = 0
    """0 takes a free one."""
    tls: Tls | None = None
    """With a host."""


@contextlib.asynccontextmanager
async def serve(provider: Provider, places: Places) -> AsyncIterator[int]:
    """Serve while the context lasts; gives the port. UnavailableError if a place is taken."""
    server = grpc.aio.server(handlers=[_handlers(Service(provider))])
    port = _listen(server, places)
    if places.socket is not None:
        _make_room(places.socket)
        _listen_locally(server, places.socket)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(_GRACE_SECONDS)
        if places.socket is not None:
            places.socket.unlink(missing_ok=True)


def _listen(server: grpc.aio.Server, places: Places) -> int:
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
        raise UnavailableError(f"{host}:{places.port}: cannot listen there") from problem


def _listen_locally(server: grpc.aio.Server, socket: Path) -> None:
    before = os.umask(_PRIVATE)
    try:
        server.add_insecure_port(f"unix:{socket}")
    except RuntimeError as problem:
        raise UnavailableError(f"{socket}: cannot listen there") from problem
    finally:
        os.umask(before)


def _make_room(socket: Path) -> None:
    """A socket that a dead process left behind goes; anything else stays."""
    if len(os.fsencode(socket)) > _LONGEST:
        raise UnavailableError(f"{socket}: the path of a socket has at most {_LONGEST} bytes")
    if not socket.exists():
        return
    with contextlib.closing(sockets.socket(sockets.AF_UNIX)) as probe:
        if not socket.is_socket() or probe.connect_ex(str(socket)) == 0:
            raise UnavailableError(f"{socket}: is there already, and in use")
    socket.unlink()


def _handlers(service: Service) -> grpc.GenericRpcHandler[Message, Message]:
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
    answer: Callable[[_Asked], Awaitable[_Told]], kind: type[_Asked]
) -> grpc.RpcMethodHandler[_Asked, _Told]:
    async def call(request: _Asked, context: _Context) -> _Told:
        try:
            return await answer(request)
        except Exception as error:
            code = code_of(error)
            if code is grpc.StatusCode.INTERNAL:
                log.exception("a question about node groups failed")
            await context.abort(code, str(error))

    return grpc.unary_unary_rpc_method_handler(
        call, request_deserializer=kind.FromString, response_serializer=_serialize
    )


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
