"""A provider in a process of its own, over mutual TLS: `python -m … FOLDER [PORT]`.

It prints its port, and writes beside it what a client needs. Some of its groups are as strangers'
programs may have them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from bayplan.client.serving.certificates import CertificateAuthority
from bayplan.kube.nodes import Node
from bayplan.nodegroups import CSI_DRIVERS, CloudNodeGroup, GroupOptions, Provider, TemplateNodeInfo
from bayplan.nodegroups.externalgrpc.server import ListenAddresses, Tls, serve
from tests.builders import make_node
from tests.embedded.cloud.clouds import SimulatedCloud

LIMITS = "disk.csi.example.com=many,files.csi.example.com=3"


class OddProvider:
    """A provider most of whose answers make sense."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def groups(self) -> Sequence[CloudNodeGroup]:
        sound = list(await self._inner.groups())
        odd = [
            CloudNodeGroup("negative", -1, 5),
            CloudNodeGroup("crossed", 5, 1),
            CloudNodeGroup("", 0, 1),
        ]
        return [*odd, *sound, sound[0]]

    async def target_size(self, group: str) -> int:
        return -3 if group == "gpus" else await self._inner.target_size(group)

    async def template(self, group: str) -> TemplateNodeInfo:
        if group == "gpus":
            return TemplateNodeInfo(make_node("n").capacity({"cpu": "lots"}).obj())
        if group == "nameless":
            return TemplateNodeInfo(Node())
        node = make_node("n").obj()
        node.metadata.annotations = {CSI_DRIVERS: LIMITS}
        return TemplateNodeInfo(node)

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        return GroupOptions(
            scale_down_utilization_threshold=float("nan"),
            scale_down_unneeded_time=60.0,
            scale_down_gpu_utilization_threshold=7.0,
        )

    async def node_price(self, *_: object) -> float:
        return float("inf")


async def main(folder: Path, port: int) -> None:
    now = datetime.now(UTC)
    ours = CertificateAuthority.create(now)
    pair = ours.server_pair(["127.0.0.1"], now)
    tls = Tls(pair.certificate, pair.key, clients=ours.pair.certificate)
    simulated = SimulatedCloud()
    simulated.forward()
    provider: Any = OddProvider(simulated.provider)
    async with serve(provider, ListenAddresses(host="127.0.0.1", port=port, tls=tls)) as taken:
        client = ours.client_pair("autoscaler", (), now)
        stranger = CertificateAuthority.create(now).client_pair("stranger", (), now)
        (folder / "ca.crt").write_bytes(ours.pair.certificate)
        for name, shown in (("client", client), ("stranger", stranger)):
            (folder / f"{name}.crt").write_bytes(shown.certificate)
            (folder / f"{name}.key").write_bytes(shown.key)
            config = {"address": f"127.0.0.1:{taken}", "cacert": "ca.crt", "grpc_timeout": "2s"}
            config |= {"cert": f"{name}.crt", "key": f"{name}.key"}
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))
        del config["cert"], config["key"]
        (folder / "nobody.yaml").write_text(yaml.safe_dump(config))
        sys.stdout.write(f"{taken}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
