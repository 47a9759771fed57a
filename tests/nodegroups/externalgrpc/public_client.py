"""A stranger's client of the externalgrpc protocol: made from the public table of field numbers.

    python -m tests.nodegroups.externalgrpc.public_client CLOUD_CONFIG FOLDER

compiles the table into the folder with protoc, drives the cloud with the generated stub, over TLS,
and prints the answers as JSON. It runs in a process of its own, since the protocol's names can
be registered only once in each, and it imports nothing of ours.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import grpc
import yaml
from google.protobuf.json_format import MessageToDict
from grpc_tools import protoc

from tests.patience import PATIENCE

PACKAGE = "clusterautoscaler.cloudprovider.v1.externalgrpc"
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
ANY = "google.protobuf.Any"
PAIRED = (
    "NodeGroups",
    "NodeGroupForNode",
    "PricingNodePrice",
    "PricingPodPrice",
    "GPULabel",
    "GetAvailableGPUTypes",
    "Cleanup",
    "Refresh",
    "NodeGroupTargetSize",
    "NodeGroupIncreaseSize",
    "NodeGroupDeleteNodes",
    "NodeGroupDecreaseTargetSize",
    "NodeGroupNodes",
    "NodeGroupTemplateNodeInfo",
)
MESSAGES = {
    "NodeGroup": "string id=1, int32 minSize=2, int32 maxSize=3, string debug=4",
    "ExternalGrpcNode": "string providerID=1, string name=2, map<string| string> labels=3,"
    " map<string| string> annotations=4",
    "NodeGroupsRequest": "",
    "NodeGroupsResponse": "repeated NodeGroup nodeGroups=1",
    "NodeGroupForNodeRequest": "ExternalGrpcNode node=1",
    "NodeGroupForNodeResponse": "NodeGroup nodeGroup=1",
    "PricingNodePriceRequest": f"ExternalGrpcNode node=1, {TIMESTAMP} startTimestamp=4,"
    f" {TIMESTAMP} endTimestamp=5",
    "PricingNodePriceResponse": "double price=1",
    "PricingPodPriceRequest": f"bytes pod_bytes=4, {TIMESTAMP} startTimestamp=5,"
    f" {TIMESTAMP} endTimestamp=6",
    "PricingPodPriceResponse": "double price=1",
    "GPULabelRequest": "",
    "GPULabelResponse": "string label=1",
    "GetAvailableGPUTypesRequest": "",
    "GetAvailableGPUTypesResponse": f"map<string| {ANY}> gpuTypes=1",
    "CleanupRequest": "",
    "CleanupResponse": "",
    "RefreshRequest": "",
    "RefreshResponse": "",
    "NodeGroupTargetSizeRequest": "string id=1",
    "NodeGroupTargetSizeResponse": "int32 targetSize=1",
    "NodeGroupIncreaseSizeRequest": "int32 delta=1, string id=2",
    "NodeGroupIncreaseSizeResponse": "",
    "NodeGroupDeleteNodesRequest": "repeated ExternalGrpcNode nodes=1, string id=2",
    "NodeGroupDeleteNodesResponse": "",
    "NodeGroupDecreaseTargetSizeRequest": "int32 delta=1, string id=2",
    "NodeGroupDecreaseTargetSizeResponse": "",
    "NodeGroupNodesRequest": "string id=1",
    "NodeGroupNodesResponse": "repeated Instance instances=1",
    "Instance": "string id=1, InstanceStatus status=2",
    "InstanceStatus": "InstanceState instanceState=1, InstanceErrorInfo errorInfo=2",
    "InstanceErrorInfo": "string errorCode=1, string errorMessage=2, int32 instanceErrorClass=3",
    "NodeGroupTemplateNodeInfoRequest": "string id=1",
    "NodeGroupTemplateNodeInfoResponse": "bytes nodeBytes=2",
    "NodeGroupAutoscalingOptions": "double scaleDownUtilizationThreshold=1,"
    " double scaleDownGpuUtilizationThreshold=2, bool zeroOrMaxNodeScaling=6,"
    f" bool ignoreDaemonSetsUtilization=7, {DURATION} scaleDownUnneededDuration=8,"
    f" {DURATION} scaleDownUnreadyDuration=9, {DURATION} MaxNodeProvisionDuration=10",
    "NodeGroupAutoscalingOptionsRequest": "string id=1, NodeGroupAutoscalingOptions defaults=2",
    "NodeGroupAutoscalingOptionsResponse": "NodeGroupAutoscalingOptions"
    " nodeGroupAutoscalingOptions=1",
}
STATES = "enum InstanceState { unspecified = 0; running = 1; creating = 2; deleting = 3; }"


def proto() -> str:
    """The table as a .proto file."""
    lines = ['syntax = "proto3";', f"package {PACKAGE};", STATES]
    lines += [f'import "google/protobuf/{one}.proto";' for one in ("any", "timestamp", "duration")]
    for name, fields in MESSAGES.items():
        body = "; ".join(one.strip() for one in fields.split(",") if one).replace("|", ",")
        lines.append(f"message {name} {{ {body}{';' if body else ''} }}")
    calls = {name: (f"{name}Request", f"{name}Response") for name in PAIRED}
    options = "NodeGroupAutoscalingOptions"
    calls["NodeGroupGetOptions"] = (f"{options}Request", f"{options}Response")
    rpcs = [
        f"rpc {name}({request}) returns ({response});"
        for name, (request, response) in calls.items()
    ]
    return "\n".join([*lines, "service CloudProvider {", *rpcs, "}"])


def generate(folder: Path) -> tuple[Any, Any]:
    """The messages and the stub, as protoc makes them."""
    (folder / "public.proto").write_text(proto())
    wellknown = Path(protoc.__file__).parent / "_proto"
    places = [f"-I{folder}", f"-I{wellknown}", f"--python_out={folder}"]
    if protoc.main(["protoc", *places, f"--grpc_python_out={folder}", "public.proto"]):
        raise SystemExit("protoc failed")
    sys.path.insert(0, str(folder))
    return importlib.import_module("public_pb2"), importlib.import_module("public_pb2_grpc")


def channel(config: Path) -> grpc.Channel:
    """A connection as Cluster Autoscaler makes it from its configuration file."""
    said = yaml.safe_load(config.read_text())
    pem = {name: Path(said[name]).read_bytes() for name in ("cacert", "key", "cert")}
    credentials = grpc.ssl_channel_credentials(pem["cacert"], pem["key"], pem["cert"])
    return grpc.secure_channel(said["address"], credentials)


class PublicClient:
    """Calls the stub, and keeps the answers."""

    def __init__(self, pb: Any, stub: Any) -> None:
        self.pb = pb
        self.stub = stub
        self.answers: dict[str, Any] = {}

    def ask(self, method: str, key: str = "", request: str = "", **fields: Any) -> Any:
        """The answer, or the name of the code that was given instead."""
        message = getattr(self.pb, request or f"{method}Request")(**fields)
        try:
            answer = getattr(self.stub, method)(message, timeout=PATIENCE)
        except grpc.RpcError as error:
            answer = None
            self.answers[key or method] = error.code().name
        else:
            self.answers[key or method] = MessageToDict(answer)
        return answer

    def until_running(self, group: str, count: int) -> None:
        """Ask for the instances until so many run."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            found = self.ask("NodeGroupNodes", id=group).instances
            if sum(one.status.instanceState == self.pb.running for one in found) == count:
                return
        raise SystemExit(f"{group} does not run: {self.answers}")


def drive(client: PublicClient) -> None:
    """Scale a group of two up and down, and ask all else."""
    node = client.pb.ExternalGrpcNode
    for method in ("Refresh", "NodeGroups", "GPULabel", "GetAvailableGPUTypes"):
        client.ask(method)
    client.until_running("workers", 2)
    client.ask("NodeGroupIncreaseSize", id="workers", delta=2)
    client.until_running("workers", 4)
    client.ask("NodeGroupTargetSize", "target after increase", id="workers")
    gone = [node(providerID=f"sim://workers/workers-{n}", name=f"workers-{n}") for n in (3, 4)]
    client.ask("NodeGroupForNode", node=gone[0])
    client.ask("NodeGroupForNode", "stranger", node=node(providerID="aws:///i-1", name="i-1"))
    client.ask("NodeGroupDeleteNodes", id="workers", nodes=gone)
    client.ask("NodeGroupTargetSize", "target after delete", id="workers")
    client.ask("PricingNodePrice", node=node(providerID="sim://workers/workers-1"),
              startTimestamp={"seconds": 0}, endTimestamp={"seconds": 7200})  # fmt: skip
    client.ask("PricingPodPrice", pod_bytes=b"\x12\x00", endTimestamp={"seconds": 1})
    client.ask("NodeGroupTemplateNodeInfo", id="workers")
    options = "NodeGroupAutoscalingOptionsRequest"
    client.ask("NodeGroupGetOptions", request=options, id="workers")
    client.ask("NodeGroupTargetSize", "unknown group", id="others")
    client.ask("NodeGroupIncreaseSize", "above maximum", id="workers", delta=9)
    client.ask("NodeGroupIncreaseSize", "by nothing", id="workers", delta=0)
    client.ask("NodeGroupDecreaseTargetSize", "nothing is on its way", id="workers", delta=-1)
    client.ask("NodeGroupDecreaseTargetSize", "the wrong way", id="workers", delta=1)
    client.ask("Cleanup")


def main(config: str, folder: str) -> None:
    """Drive the cloud of a configuration file."""
    pb, made = generate(Path(folder))
    with channel(Path(config)) as connection:
        client = PublicClient(pb, made.CloudProviderStub(connection))
        drive(client)
    sys.stdout.write(json.dumps(client.answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
