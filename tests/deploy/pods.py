"""Pods on this machine: what a Deployment's template says, run as processes.

It does what a kubelet does for our daemons, and no more: the environment with its fields, `$(NAME)`
in arguments, files of Secrets and ConfigMaps, the service account's token, an address of its own
(each pod has one of 127.0.0.0/8 in the place of all of its own, which no other process of the tests
gives away), probes, restarts, and what a service's endpoints are made from. Whatever is wrong in a
template is wrong here, too.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from bayplan.client import Client, untyped
from tests.accounts import token_of
from tests.patience import PATIENCE

SECRETS = untyped("", "v1", "secrets", "Secret")
CONFIG_MAPS = untyped("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = untyped("apps", "v1", "deployments", "Deployment")
DAEMON_SETS = untyped("apps", "v1", "daemonsets", "DaemonSet")
_VARIABLE = re.compile(r"\$\((\w+)\)")
_NUMBERS = count(1)
_TOLD = 3000
_MOST_RESTARTS = 5
"""Daemons end when they lose their lease, as they may on a busy machine; a bad one always ends."""


@dataclass(slots=True)
class LocalPod:
    """One pod, as a process."""

    name: str
    address: str
    ports: Mapping[str, int]
    container: Mapping[str, Any]
    start: Callable[[], Awaitable[asyncio.subprocess.Process]]
    process: asyncio.subprocess.Process
    log: Path
    restarts: int = 0

    async def restart_always(self) -> None:
        """Restart the process whenever it ends, up to a limit."""
        while self.restarts < _MOST_RESTARTS:
            await self.process.wait()
            self.restarts += 1
            self.process = await self.start()

    async def until(self, probe: str) -> None:
        """Wait until one of its probes succeeds."""
        while await self.answers(probe) != 200:
            assert self.restarts < _MOST_RESTARTS, self.log.read_text()
            await asyncio.sleep(0.2)

    async def answers(self, probe: str) -> int:
        """The code that one of its probes gets; 0 if nobody answers."""
        asked = self.container[f"{probe}Probe"]["httpGet"]
        url = f"http://{self.address}:{self.ports[asked['port']]}{asked['path']}"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                return response.status
        except aiohttp.ClientError:
            return 0

    async def metrics(self) -> str:
        url = f"http://{self.address}:{self.ports['metrics']}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await response.text()


@dataclass(slots=True)
class Machine:
    """Runs pods from templates that the API server has."""

    client: Client
    kubeconfig: Path
    folder: Path
    pods: list[LocalPod] = field(default_factory=list)
    _restarting: list[asyncio.Task[None]] = field(default_factory=list)

    async def run(self, namespace: str) -> None:
        """Run all Deployments and DaemonSets of a namespace until all their pods are ready."""
        for resource in (DEPLOYMENTS, DAEMON_SETS):
            for workload in (await self.client.list(resource, namespace)).items:
                spec: Any = workload["spec"]
                for _ in range(spec.get("replicas", 1)):
                    self.pods.append(await self._start(namespace, spec["template"]))
        self._restarting = [asyncio.create_task(one.restart_always()) for one in self.pods]
        await self.until("readiness")

    async def until(self, probe: str) -> None:
        """Wait until that probe of all pods succeeds."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(one.until(probe) for one in self.pods))

    async def serve(self, namespace: str, service: str) -> None:
        """Say who is behind a service, as a cluster does once pods are ready."""
        found: Any = await self.client.get(
            untyped("", "v1", "services", "Service"), namespace, service
        )
        port = found["spec"]["ports"][0]
        behind = [one for one in self.pods if one.name.startswith(service)]
        subset = {
            "addresses": [{"ip": one.address} for one in behind],
            "ports": [{"name": port["name"], "port": behind[0].ports[port["targetPort"]]}],
        }
        meta = {"namespace": namespace, "name": service}
        await self.client.create(
            {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [subset]}
        )

    def told(self) -> str:
        """The end of what every pod has logged."""
        return "\n".join(f"{one.name}:\n{one.log.read_text()[-_TOLD:]}" for one in self.pods)

    async def _start(self, namespace: str, template: Mapping[str, Any]) -> LocalPod:
        spec = template["spec"]
        (container,) = spec["containers"]
        number = next(_NUMBERS)
        address, name = _address(number), f"{spec['serviceAccountName']}-{number}"
        fields = {"metadata.namespace": namespace, "metadata.name": name, "spec.nodeName": "here"}
        given = {
            one["name"]: one.get("value") or fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
            for one in container.get("env", ())
        }
        mounts = await self._mounted(namespace, name, spec, container)
        words = [*container["command"], *container["args"]]
        assert words[0] == "bayplan"
        command = [self._word(one, given, mounts, address) for one in words[1:]]
        log = self.folder / f"{name}.log"
        environment = {**os.environ, **given, "KUBECONFIG": str(self._config(spec))}

        async def start() -> asyncio.subprocess.Process:
            with log.open("ab") as out:
                return await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "bayplan", *command),
                    env=environment,
                    stdout=out,
                    stderr=out,
                )

        ports = {one["name"]: one["containerPort"] for one in container["ports"]}
        return LocalPod(name, address, ports, container, start, await start(), log)

    def _word(
        self, word: str, given: Mapping[str, str], mounts: Mapping[str, Path], address: str
    ) -> str:
        word = _VARIABLE.sub(lambda found: given[found[1]], word).replace("0.0.0.0", address)
        for path, folder in mounts.items():
            word = word.replace(f"={path}/", f"={folder}/")
        return word

    async def _mounted(
        self, namespace: str, pod: str, spec: Mapping[str, Any], container: Mapping[str, Any]
    ) -> dict[str, Path]:
        """A folder for each volume, with what is in it."""
        volumes = {one["name"]: one for one in spec.get("volumes", ())}
        made: dict[str, Path] = {}
        for mount in container.get("volumeMounts", ()):
            folder = self.folder / pod / mount["name"]
            folder.mkdir(parents=True)
            for name, data in (await self._data(namespace, volumes[mount["name"]])).items():
                (folder / name).write_bytes(data)
            made[mount["mountPath"]] = folder
        return made

    async def _data(self, namespace: str, volume: Mapping[str, Any]) -> dict[str, bytes]:
        if "secret" in volume:
            held: Any = await self.client.get(SECRETS, namespace, volume["secret"]["secretName"])
            return {key: base64.b64decode(one) for key, one in held["data"].items()}
        if "configMap" in volume:
            held = await self.client.get(CONFIG_MAPS, namespace, volume["configMap"]["name"])
            return {key: one.encode() for key, one in held["data"].items()}
        return {}

    def _config(self, spec: Mapping[str, Any]) -> Path:
        """A kubeconfig that may do what the pod's account may."""
        account = spec["serviceAccountName"]
        said = yaml.safe_load(self.kubeconfig.read_text())
        said["users"][0]["user"] = {"token": token_of(account)}
        path = self.folder / f"{account}.kubeconfig"
        path.write_text(yaml.safe_dump(said))
        return path

    async def stop(self) -> list[int]:
        """End all pods in order; their exit codes."""
        for task in self._restarting:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        running = [one for one in self.pods if one.process.returncode is None]
        for pod in running:
            pod.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            return list(await asyncio.gather(*(one.process.wait() for one in running)))


def _address(number: int) -> str:
    """One that is this process's alone."""
    high, low = divmod(os.getpid() % 65536, 256)
    return f"127.{high}.{low}.{number}" if high else f"127.1.{low}.{number + 100}"


@asynccontextmanager
async def machine(client: Client, kubeconfig: Path, folder: Path) -> AsyncIterator[Machine]:
    """A machine whose pods end with it."""
    made = Machine(client, kubeconfig, folder)
    try:
        yield made
    except BaseException:
        print(made.told())  # noqa: T201 - pytest shows it with the failure
        raise
    finally:
        await made.stop()
