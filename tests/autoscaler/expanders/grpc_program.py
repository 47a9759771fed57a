"""A program behind the `grpc` expander: a real gRPC server with TLS on a free port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import grpc
import grpc.aio

from bayplan.autoscaler.expanders.grpcplugin import expander_pb2 as pb
from bayplan.autoscaler.expanders.grpcplugin.client import GrpcExpanderConfig, read_expander_config
from bayplan.client.serving.certificates import CertificateAuthority

Choose = Callable[[list[str]], list[str]]
FAILS = "fails"
HANGS = "hangs"


@dataclass(slots=True)
class Program:
    """The program: by the ids of groups, those that it chooses."""

    choose: Choose
    port: int = 0
    certificate: Path = Path()
    calls: list[pb.BestOptionsRequest] = field(default_factory=list)

    @property
    def config(self) -> GrpcExpanderConfig:
        return read_expander_config(f"127.0.0.1:{self.port}", str(self.certificate))

    async def best_options(
        self,
        request: pb.BestOptionsRequest,
        context: grpc.aio.ServicerContext[pb.BestOptionsRequest, pb.BestOptionsResponse],
    ) -> pb.BestOptionsResponse:
        self.calls.append(request)
        chosen = self.choose([one.nodeGroupId for one in request.options])
        if chosen == [FAILS]:
            await context.abort(grpc.StatusCode.INTERNAL, "out of order")
        if chosen == [HANGS]:
            await asyncio.Event().wait()
        return pb.BestOptionsResponse(options=[pb.Option(nodeGroupId=one) for one in chosen])


@asynccontextmanager
async def program(choose: Choose, folder: Path) -> AsyncIterator[Program]:
    """Serve a program while the context lasts."""
    authority = CertificateAuthority.create(datetime.now(UTC))
    pair = authority.server_pair(["127.0.0.1"], datetime.now(UTC))
    certificate = folder / "expander.crt"
    certificate.write_bytes(authority.pair.certificate)
    served = Program(choose, certificate=certificate)
    method = grpc.unary_unary_rpc_method_handler(
        served.best_options,
        request_deserializer=pb.BestOptionsRequest.FromString,
        response_serializer=pb.BestOptionsResponse.SerializeToString,
    )
    handlers = grpc.method_handlers_generic_handler("grpcplugin.Expander", {"BestOptions": method})
    server = grpc.aio.server(handlers=[handlers])
    credentials = grpc.ssl_server_credentials([(pair.key, pair.certificate)])
    served.port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield served
    finally:
        await server.stop(None)
