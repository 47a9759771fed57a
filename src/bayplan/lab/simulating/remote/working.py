"""What a pod of the Job does: one run, whose result goes into the ConfigMap that waits for it."""

from __future__ import annotations

import base64

from bayplan.client import Client
from bayplan.client.resources import CONFIG_MAPS
from bayplan.client.verbs.writes import merge
from bayplan.lab.simulating.orders import Inputs
from bayplan.lab.simulating.remote.objects import RESULT
from bayplan.lab.simulating.remote.packing import pack
from bayplan.lab.simulating.results import encode
from bayplan.lab.simulating.running import carry_out


def packed_result(inputs: Inputs, index: int) -> bytes:
    """The result of one of the runs; IndexError if there is no such run."""
    return pack(encode(carry_out(inputs.orders()[index])), "the result of a run")


async def hand_in(client: Client, namespace: str, results: str, index: int, data: bytes) -> None:
    """Fill in the ConfigMap of a run."""
    content = {"binaryData": {RESULT: base64.b64encode(data).decode()}}
    await client.patch(CONFIG_MAPS, namespace, f"{results}-{index}", change=merge(content))
