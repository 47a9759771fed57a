"""`bayplan simulate-worker`: the command of the pods of `bayplan simulate --on-cluster`."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from bayplan.base.configfiles import ConfigFileError
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.text.output import notices, printable
from bayplan.client.errors import ClientError
from bayplan.lab.simulation.remote import PackingError, packed_result, store_result, unpack_inputs


def simulate_worker(
    *,
    inputs: Path,
    namespace: str,
    results: str,
    index: int,
    cluster: ClusterAccess | None = None,
) -> int:
    """Run one simulation and store its result.

    Parameters
    ----------
    inputs
        The file with the inputs of all runs.
    namespace
        The namespace of the ConfigMaps for results.
    results
        The prefix of their names.
    index
        The index of the run.
    """
    logging.disable(logging.CRITICAL)
    try:
        packed = packed_result(unpack_inputs(inputs.read_bytes()), index)
    except OSError as problem:
        raise BadInput(f"--inputs {inputs}: {problem.strerror}") from None
    except (PackingError, ConfigFileError) as problem:
        raise BadInput(str(problem)) from None
    except IndexError:
        raise BadInput(f"--index {index}: run does not exist") from None
    try:
        asyncio.run(_handed_in(cluster or ClusterAccess(), (namespace, results, index), packed))
    except ClientError as problem:
        notices().print(printable(str(problem)), style="red")
        return EXIT_NO
    return EXIT_OK


async def _handed_in(cluster: ClusterAccess, place: tuple[str, str, int], packed: bytes) -> None:
    async with cluster.connect() as client:
        await store_result(client, *place, packed)
