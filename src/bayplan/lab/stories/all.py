"""The eight stories: their words, and what must be true at their ends.

No figure of a run is written here: the texts of the checks are made of what the run came to.
"""

from __future__ import annotations

from math import ceil
from typing import Any, TypeAlias

from bayplan.client import Client, Untyped, merge
from bayplan.client.errors import ApiError
from bayplan.kube.gates import (
    ATTACH_VOLUME_LIMIT,
    QUEUE_ALLOCATION_GATE,
    RUNTIME_CLASS_IN_IMAGE_CRI_API,
    VOLUME_LIMIT_SCALING,
)
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import Queue
from bayplan.lab.stories.cluster import Act, ClusterFigures, in_cluster
from bayplan.lab.stories.images import ImageFigures, in_images
from bayplan.lab.stories.story import Check, Story

AnyStory: TypeAlias = Story[Any]
_ON_A_NODE = 8
"""Volumes that a node takes, in the stories of volumes."""
_PODS = 20
_NEEDED = ceil(_PODS / _ON_A_NODE)
QUOTA = "there was quota"
ASKS = "a pod that asks for a limit is"


def _all_run(on: ClusterFigures, pods: int) -> Check:
    return Check(f"{on.running} of {pods} pods run", on.running == pods and not on.waiting)


def _bought(on: ClusterFigures, wanted: int, why: str) -> Check:
    return Check(f"{on.bought} nodes bought, {why}", on.bought == wanted)


def _sooner(on: ClusterFigures, off: ClusterFigures) -> Check:
    saved = (off.lost - on.lost) / 60
    return Check(f"{saved:.0f} minutes of waiting saved, of all pods", saved > 0)


def _no_failures(on: ClusterFigures) -> Check:
    return Check(f"{on.failures} volume failures", not on.failures)


def _none_stuck(on: ClusterFigures, off: ClusterFigures) -> Check:
    said = f"{on.stuck} pods were stuck, {off.stuck} with the gate off"
    return Check(said, on.stuck == 0 < off.stuck)


def _attach_limit(on: ClusterFigures, off: ClusterFigures) -> tuple[Check, ...]:
    return (
        _bought(on, _NEEDED, f"which is ⌈{_PODS}/{_ON_A_NODE}⌉"),
        _all_run(on, 36),
        _no_failures(on),
        _sooner(on, off),
    )


def _no_driver(on: ClusterFigures, off: ClusterFigures) -> tuple[Check, ...]:
    bare = on.running_in["bare"]
    return (
        _all_run(on, 26),
        Check(f"{bare} pods without volumes use the node without the driver", bare > 0),
        Check(f"with the gate off {off.stuck} pods are stuck on it", off.stuck > 0),
        _sooner(on, off),
    )


def _from_zero(on: ClusterFigures, off: ClusterFigures) -> tuple[Check, ...]:
    return (
        _bought(on, _NEEDED, f"which is ⌈{_PODS}/{_ON_A_NODE}⌉, known from the template alone"),
        _all_run(on, _PODS),
        _no_failures(on),
        _sooner(on, off),
    )


def _never_came(on: ClusterFigures, off: ClusterFigures) -> tuple[Check, ...]:
    most = f"at most {on.most_nodes} nodes at once: none twice for the same pods"
    return (
        Check(most, on.most_nodes == _NEEDED),
        _bought(on, _NEEDED, "the replacement among them"),
        _all_run(on, _PODS),
        _none_stuck(on, off),
        _sooner(on, off),
    )


def _not_yet(on: ClusterFigures, off: ClusterFigures) -> tuple[Check, ...]:
    early, without = on.bought_before[QUOTA], off.bought_before[QUOTA]
    return (
        Check(f"{early} nodes bought while the queue said no", early == 0),
        Check(f"with the gate off {without} were bought, and idle", without > 0),
        Check(f"then {on.bought} were bought, and {on.running} of 12 pods run", on.running == 12),
        Check(f"cost {on.spent:.2f} instead of {off.spent:.2f}", on.spent < off.spent),
    )


def _old_limits(on: ClusterFigures, off: ClusterFigures) -> tuple[Check, ...]:
    asked = on.answers.get(ASKS, "")
    return (
        _all_run(on, 30),
        _no_failures(on),
        Check(f"with the gate off {off.stuck} pods are stuck", off.stuck > 0),
        Check(f"{ASKS} {asked}", asked == "refused"),
    )


def _two_images(on: ImageFigures, off: ImageFigures) -> tuple[Check, ...]:
    return (
        Check(f"{on.manifests} manifests of one image on one node", on.manifests == 2),
        Check(f"{on.served} of 2 pods have the image of their class", on.served == 2),
        Check(f"collecting one leaves {on.left}", on.left == 1),
        Check(f"with the gate off {off.served} of 2 has it", off.served < 2),
    )


def _everything(on: ClusterFigures, off: ClusterFigures) -> tuple[Check, ...]:
    return (_all_run(on, _PODS), _none_stuck(on, off), _sooner(on, off))


async def _more_quota(client: Client) -> str:
    change = merge({"spec": {"capability": {"cpu": "36"}}})
    await client.patch(Queue, "research", change=change)
    return ""


async def _ask_for_a_limit(client: Client) -> str:
    limit = {"attachable-volumes-azure-disk": "1"}
    container = {"name": "c", "image": "i", "resources": {"requests": limit, "limits": limit}}
    pod: Untyped = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": "asks"},
        "spec": {"containers": [container], "schedulingGates": [{"name": "example.com/never"}]},
    }
    try:
        await client.create(pod)
    except ApiError:
        return "refused"
    await client.delete(Pod, "default", "asks")
    return "let in"


_LEDGER = (
    "kubectl get pods -o wide",
    "bayplan volumes",
    "bayplan explain --all-pending",
)
STORIES: tuple[AnyStory, ...] = (
    Story(
        1,
        "Attach limit reached",
        "Two nodes take 8 volumes each, and have 8. At 5:00 twenty pods come, each with a volume."
        " There is plenty of CPU and memory: only the places for volumes are gone. The autoscaler"
        " reads the limit where the scheduler reads it, and buys for all of them at once.",
        "The autoscaler counts CPU and memory alone, so it buys one node at a time, and finds out"
        " each time that it was not enough.",
        VOLUME_LIMIT_SCALING,
        "1-attach-limit-reached.yaml",
        in_cluster(10),
        _attach_limit,
        _LEDGER,
    ),
    Story(
        2,
        "No driver here",
        "Of three nodes one never gets the CSI driver. Nobody wrote a taint or an affinity. Twenty"
        " pods with a volume and six without come: the scheduler keeps the first away from that"
        " node, and uses it for the others.",
        "A node that has not said what it can attach is taken for one that can attach anything:"
        " pods are sent there, and hang.",
        VOLUME_LIMIT_SCALING,
        "2-no-driver-here.yaml",
        in_cluster(4),
        _no_driver,
        ("kubectl get csinodes", *_LEDGER),
    ),
    Story(
        3,
        "From zero",
        "The node group is empty; what its nodes can attach is known from its template alone, 8"
        " volumes each. The same twenty pods come.",
        "The template's limit is not looked at: nodes are bought one after another, and pods are"
        " sent to each before its driver is there.",
        VOLUME_LIMIT_SCALING,
        "3-from-zero.yaml",
        in_cluster(6),
        _from_zero,
        _LEDGER,
    ),
    Story(
        4,
        "The driver that never came",
        "The first node is up, but its CSI driver never registers. It counts as on its way, so no"
        " second node is bought for the same pods; after ten minutes it is given up, removed and"
        " replaced.",
        "The node looks empty and willing: all twenty pods are sent there and hang, and nothing is"
        " bought, since the autoscaler sees nobody wait.",
        VOLUME_LIMIT_SCALING,
        "4-the-driver-that-never-came.yaml",
        in_cluster(18),
        _never_came,
        (
            "kubectl get csinodes",
            "kubectl get events --field-selector reason=CSIDriverMissing",
            *_LEDGER,
        ),
    ),
    Story(
        5,
        "Queue says not yet",
        "Twelve pods of one gang ask for 36 cores, and their queue has 30. The webhook gives them a"
        " gate, so the autoscaler hears nothing. At 4:00 somebody raises the quota to 36: all"
        " twelve lose their gates at once, no node fits, nodes are bought, they run.",
        "The queue says not yet, and the autoscaler hears buy: nodes stand idle until the quota is"
        " there.",
        QUEUE_ALLOCATION_GATE,
        "5-queue-says-not-yet.yaml",
        in_cluster(6, Act(240, QUOTA, _more_quota)),
        _not_yet,
        (
            "kubectl get pods",
            "bayplan queues",
            'kubectl patch queue research --type merge -p \'{"spec":{"capability":{"cpu":"36"}}}\'',
            "kubectl get podgroups",
        ),
    ),
    Story(
        6,
        "Old limits, by node type",
        "This driver says no limit in CSINode. The node agent knows what each VM size takes and"
        " publishes it in the node's status: 4 disks here, 16 there. The scheduler keeps to it, and"
        " the autoscaler expects it of new nodes. Twenty pods come, ten more at 5:00.",
        "Nobody publishes anything: pods are sent to nodes that cannot attach their disks, and hang"
        " in ContainerCreating.",
        ATTACH_VOLUME_LIMIT,
        "6-old-limits-by-node-type.yaml",
        in_cluster(8, Act(120, ASKS, _ask_for_a_limit)),
        _old_limits,
        ("kubectl get nodes -o yaml | grep attachable-volumes", *_LEDGER),
    ),
    Story(
        7,
        "One image, two runtime classes",
        "Two pods on one node name the same image, under two runtime classes that run different"
        " platforms. The node's agent pulls from a registry on this machine through a CRI service,"
        " one manifest for each class. Then one pod goes, and its manifest is collected.",
        "The node keeps one image for each name: the second pod is given what the first one has"
        " pulled.",
        RUNTIME_CLASS_IN_IMAGE_CRI_API,
        "7-one-image-two-runtime-classes.yaml",
        in_images,
        _two_images,
        ("kubectl get runtimeclasses", "kubectl get pods -o wide"),
    ),
    Story(
        8,
        "Everything off",
        "Full nodes, a node without a driver, and one whose driver comes ten minutes late, all in"
        " one cluster.",
        "Everything that stories 1, 2 and 4 lost is lost here, too.",
        VOLUME_LIMIT_SCALING,
        "8-everything-off.yaml",
        in_cluster(14),
        _everything,
        _LEDGER,
    ),
)
"""All of them, in order."""
BY_GATE: dict[str, AnyStory] = {
    VOLUME_LIMIT_SCALING: STORIES[0],
    ATTACH_VOLUME_LIMIT: STORIES[5],
    QUEUE_ALLOCATION_GATE: STORIES[4],
    RUNTIME_CLASS_IN_IMAGE_CRI_API: STORIES[6],
}
"""For each gate, the story that shows it best."""
