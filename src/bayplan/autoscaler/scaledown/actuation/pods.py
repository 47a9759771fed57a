"""The pods of a node as the API server has them now, and which of them must not be lost."""

from __future__ import annotations

from bayplan.autoscaler.scaledown.drain.pods import is_daemon, is_long_terminating, is_mirror
from bayplan.autoscaler.scaledown.expendable import is_expendable
from bayplan.client import Client
from bayplan.kube.pods import Pod


async def pods_on(client: Client, node: str) -> list[Pod]:
    """The pods of a node that have not ended, read afresh."""
    page = await client.list(Pod, fields=f"spec.nodeName={node}")
    return [pod for pod in page.items if not pod.is_terminal]


def left_behind(pods: list[Pod], client: Client, cutoff: int) -> list[Pod]:
    """Those that a node must not be deleted with: not its own, not expendable, not long gone."""
    now = client.clock.now()
    return [
        pod
        for pod in pods
        if not (
            is_daemon(pod)
            or is_mirror(pod)
            or is_expendable(pod, cutoff)
            or is_long_terminating(pod, now)
        )
    ]
