"""`bayplan cloud fail` and `recover`: inject and end faults.

Faults are entries of one ConfigMap, which the simulation watches.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.base.values import JsonValue
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.options.cluster import Output
from bayplan.cli.text.output import Format, emit, notices, printable, show, table
from bayplan.client import Client, connect, merge
from bayplan.client.errors import ClientError, ConfigError, InvalidError, NotFoundError
from bayplan.client.resources import CONFIG_MAPS
from bayplan.embedded.apiserver.discovery import is_embedded
from bayplan.embedded.control.faults import FaultKind
from bayplan.embedded.simulation.schedule import CONTROL

_NAME = re.compile(r"[-._a-zA-Z0-9]{1,100}")

Kubeconfig = Annotated[
    Path | None,
    Parameter(
        show_default=False,
        help="The kubeconfig of the simulated cluster; by default $KUBECONFIG, which `bayplan up`"
        " prints.",
    ),
]


def fail(  # noqa: PLR0913 - one for each option of the command
    kind: FaultKind,
    /,
    *,
    group: str = "",
    zone: str = "",
    node: str = "",
    driver: str = "",
    delay: str = "",
    period: str = "",
    name: str = "",
    kubeconfig: Kubeconfig = None,
) -> int:
    """Inject a fault, until `bayplan cloud recover`.

    Parameters
    ----------
    kind
        The kind of fault.
    group
        Only for this node group.
    zone
        Only in this zone.
    node
        Only for this node.
    driver
        Only for this CSI driver.
    delay
        The additional delay of a slow start, such as 10m.
    period
        The period of a flapping node, such as 2m.
    name
        The name of the fault; by default its kind and target.
    """
    aims = {"node": node, "group": group, "driver": driver, "zone": zone}
    fields = {"kind": kind, **aims, "delay": delay, "period": period}
    fault = {key: value for key, value in fields.items() if value}
    name = name or "-".join([kind, *(aim for aim in aims.values() if aim)])
    _check(name)

    async def work(client: Client) -> int:
        await _put(client, {name: json.dumps(fault)})
        show([f"{name}: until `bayplan cloud recover {name}`"])
        return EXIT_OK

    return _with_cluster(kubeconfig, work)


def recover(
    *names: str,
    all_: Annotated[bool, Parameter("--all", negative="")] = False,
    kubeconfig: Kubeconfig = None,
    output: Output = Format.table,
) -> int:
    """End faults, or list the active ones.

    Parameters
    ----------
    names
        The faults to end; without any, the active ones are listed.
    all_
        End all faults.
    """

    async def work(client: Client) -> int:
        found = await _entries(client)
        ending = list(found) if all_ else list(names)
        unknown = [name for name in ending if name not in found]
        if unknown:
            known = ", ".join(found) or "none"
            raise BadInput(f"unknown fault {unknown[0]!r}; active faults: {known}")
        if ending:
            await _put(client, dict.fromkeys(ending))
        _show({name: text for name, text in found.items() if name not in ending}, output)
        return EXIT_OK

    return _with_cluster(kubeconfig, work)


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadInput(f"--name {printable(name)}: must have only letters, digits, '-', '_', '.'")


def _with_cluster(kubeconfig: Path | None, work: Callable[[Client], Awaitable[int]]) -> int:
    try:
        return asyncio.run(_connected(kubeconfig, work))
    except (ConfigError, InvalidError) as problem:
        raise BadInput(printable(str(problem))) from problem
    except ClientError as problem:
        notices().print(f"error: {printable(str(problem))}", style="red")
        return EXIT_NO


async def _connected(kubeconfig: Path | None, work: Callable[[Client], Awaitable[int]]) -> int:
    async with connect(kubeconfig) as client:
        version = await client.version()
        if not is_embedded(version.git_version):
            raise BadInput(f"{client.access.server} is not a simulated cluster; nothing changed")
        return await work(client)


async def _entries(client: Client) -> dict[str, str]:
    try:
        found = await client.get(CONFIG_MAPS, CONTROL.namespace, CONTROL.name)
    except NotFoundError:
        return {}
    data = found.get("data")
    return {str(k): str(v) for k, v in data.items()} if isinstance(data, dict) else {}


async def _put(client: Client, entries: dict[str, str | None] | dict[str, str]) -> None:
    where = (CONTROL.namespace, CONTROL.name)
    try:
        await client.patch(CONFIG_MAPS, *where, change=merge({"data": entries}))
    except NotFoundError:
        meta: JsonValue = {"namespace": CONTROL.namespace, "name": CONTROL.name}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": entries}
        await client.create(made)


def _show(faults: dict[str, str], output: Format) -> None:
    if not output.is_for_people:
        emit({"faults": [{"name": name, "fault": faults[name]} for name in faults]}, output)
        return
    if not faults:
        show(["no faults"])
        return
    show([table(["NAME", "FAULT"], [[name, text] for name, text in faults.items()])])
