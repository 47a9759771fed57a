"""The client of a `grpc` expander: one call over TLS, with limits on time and size.

    async with GrpcExpander(read_expander_config(options)) as program:
        answer = await program.best_options(call)

Pods and nodes are sent as Kubernetes' protobuf. A failure is an answer that keeps all options, with
its cause; nothing is retried, since the next loop calls again.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import grpc.aio

from bayplan.autoscaler.expanders.grpcplugin import expander_pb2 as pb
from bayplan.autoscaler.expanders.grpcplugin.answers import (
    BestOptions,
    BestOptionsCall,
    RemoteOption,
)
from bayplan.base.configfiles import FieldProblem, read_text
from bayplan.nodegroups.externalgrpc.config import check_certificates
from bayplan.nodegroups.externalgrpc.convert import node_bytes, pod_bytes

log = logging.getLogger(__name__)
METHOD = "/grpcplugin.Expander/BestOptions"
TIMEOUT = 5.0
"""Seconds for one call, as in Cluster Autoscaler."""
MAX_MESSAGE = 128 << 20
"""Bytes of a message, as in Cluster Autoscaler."""
MAX_DETAIL = 300


class RemoteExpander(Protocol):
    """A program that chooses among options."""

    async def best_options(self, call: BestOptionsCall) -> BestOptions:
        """Return the program's choice; a failure is an answer, too."""
        ...


@dataclass(frozen=True, slots=True)
class GrpcExpanderConfig:
    """How to reach the program."""

    address: str
    """The gRPC target, HOST:PORT."""
    certificate: bytes
    """The certificate of the program or its CA, as PEM."""
    timeout: float = TIMEOUT
    max_message: int = MAX_MESSAGE


def read_expander_config(address: str, certificate: str) -> GrpcExpanderConfig:
    """Read the flags' values; ValueError or ConfigFileError if one is missing or invalid."""
    if not address:
        raise ValueError("the expander grpc needs --grpc-expander-url")
    if not certificate:
        raise ValueError("the expander grpc needs --grpc-expander-cert: it is called over TLS only")
    text = read_text(Path(certificate))
    try:
        check_certificates(text)
    except FieldProblem as problem:
        raise ValueError(f"--grpc-expander-cert {certificate}: {problem.problem}") from None
    return GrpcExpanderConfig(address, text)


class GrpcExpander:
    """A program behind Cluster Autoscaler's protocol; an asynchronous context manager."""

    def __init__(self, config: GrpcExpanderConfig) -> None:
        self._config = config
        credentials = grpc.ssl_channel_credentials(config.certificate)
        options = [
            ("grpc.max_receive_message_length", config.max_message),
            ("grpc.max_send_message_length", config.max_message),
            # A program that restarts is back in seconds; gRPC would wait for minutes.
            ("grpc.max_reconnect_backoff_ms", 2000),
        ]
        self._channel = grpc.aio.secure_channel(config.address, credentials, options=options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close(None)

    async def best_options(self, call: BestOptionsCall) -> BestOptions:
        """Call the program; a failed call keeps all options."""
        # Encoding ten thousand pods takes a second, in which leases must be renewed.
        request = await asyncio.to_thread(_encode, call)
        size, limit = request.ByteSize(), self._config.max_message
        if size > limit:
            return _failed(f"the request has {size} bytes, and at most {limit} are sent")
        send = self._channel.unary_unary(
            METHOD, pb.BestOptionsRequest.SerializeToString, pb.BestOptionsResponse.FromString
        )
        try:
            answer = await send(request, timeout=self._config.timeout)
        except grpc.aio.AioRpcError as error:
            detail = (error.details() or "")[:MAX_DETAIL]
            return _failed(f"{error.code().name.lower().replace('_', ' ')}: {detail}")
        return BestOptions(frozenset(one.nodeGroupId for one in answer.options))


def _failed(why: str) -> BestOptions:
    failure = f"the grpc expander failed: {why}"
    log.warning("%s; all options are kept", failure)
    return BestOptions(failure=failure)


def _encode(call: BestOptionsCall) -> pb.BestOptionsRequest:
    known: dict[str, bytes] = {}
    nodes = {one.group: node_bytes(one.template) for one in call.options}
    options = [_option(one, known) for one in call.options]
    return pb.BestOptionsRequest(options=options, nodeMap=nodes, nodeBytesMap=nodes)


def _option(one: RemoteOption, known: dict[str, bytes]) -> pb.Option:
    """Convert an option; most options have the same pods, so each pod is encoded once."""
    for pod in one.pods:
        if pod.key not in known:
            known[pod.key] = pod_bytes(pod)
    pods = [known[pod.key] for pod in one.pods]
    return pb.Option(
        nodeGroupId=one.group, nodeCount=one.nodes, debug=one.debug, pod=pods, podBytes=pods
    )
