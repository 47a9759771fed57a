"""The eight stories: their texts and checks.

The texts of the checks have the figures of the run; no figure is written here.
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
from bayplan.kube.volcano import Queue
from bayplan.lab.stories.cluster import ClusterFigures, StoryAction, in_cluster
from bayplan.lab.stories.images import ImageFigures, in_images
from bayplan.lab.stories.story import Story, StoryCheck

AnyStory: TypeAlias = Story[Any]
_LIMIT = 8
"""The attach limit of a node in the stories of volumes."""
_PODS = 20
_NEEDED = ceil(_PODS / _LIMIT)
QUOTA = "the quota was raised"
REQUESTS_LIMIT = "a pod that requests an attach limit is"


def _all_run(on: ClusterFigures, pods: int) -> StoryCheck:
    return StoryCheck(f"{on.running} of {pods} pods run", on.running == pods and not on.waiting)


def _added(on: ClusterFigures, wanted: int, explanation: str) -> StoryCheck:
    return StoryCheck(f"{on.added} nodes added, {explanation}", on.added == wanted)


def _sooner(on: ClusterFigures, off: ClusterFigures) -> StoryCheck:
    saved = (off.waited_seconds - on.waited_seconds) / 60
    return StoryCheck(f"{saved:.0f} minutes of waiting saved, all pods", saved > 0)


def _no_failures(on: ClusterFigures) -> StoryCheck:
    return StoryCheck(f"{on.failures} volume failures", not on.failures)


def _none_stuck(on: ClusterFigures, off: ClusterFigures) -> StoryCheck:
    text = f"{on.stuck} pods were stuck, {off.stuck} with the gate off"
    return StoryCheck(text, on.stuck == 0 < off.stuck)


def _attach_limit(on: ClusterFigures, off: ClusterFigures) -> tuple[StoryCheck, ...]:
    return (
        _added(on, _NEEDED, f"which is ⌈{_PODS}/{_LIMIT}⌉"),
        _all_run(on, 36),
        _no_failures(on),
        _sooner(on, off),
    )


def _no_driver(on: ClusterFigures, off: ClusterFigures) -> tuple[StoryCheck, ...]:
    bare = on.running_in["bare"]
    return (
        _all_run(on, 26),
        StoryCheck(f"{bare} pods without volumes use the node without the driver", bare > 0),
        StoryCheck(f"with the gate off {off.stuck} pods are stuck on it", off.stuck > 0),
        _sooner(on, off),
    )


def _from_zero(on: ClusterFigures, off: ClusterFigures) -> tuple[StoryCheck, ...]:
    return (
        _added(on, _NEEDED, f"which is ⌈{_PODS}/{_LIMIT}⌉, known from the template alone"),
        _all_run(on, _PODS),
        _no_failures(on),
        _sooner(on, off),
    )


def _never_came(on: ClusterFigures, off: ClusterFigures) -> tuple[StoryCheck, ...]:
    most = f"at most {on.most_nodes} nodes at once: none added twice for the same pods"
    return (
        StoryCheck(most, on.most_nodes == _NEEDED),
        _added(on, _NEEDED, "including the replacement"),
        _all_run(on, _PODS),
        _none_stuck(on, off),
        _sooner(on, off),
    )


def _not_yet(on: ClusterFigures, off: ClusterFigures) -> tuple[StoryCheck, ...]:
    early, without = on.added_before[QUOTA], off.added_before[QUOTA]
    return (
        StoryCheck(f"{early} nodes added while the queue did not admit the pods", early == 0),
        StoryCheck(f"with the gate off {without} were added, and idle", without > 0),
        StoryCheck(
            f"then {on.added} were added, and {on.running} of 12 pods run", on.running == 12
        ),
        StoryCheck(f"cost {on.cost:.2f} instead of {off.cost:.2f}", on.cost < off.cost),
    )


def _old_limits(on: ClusterFigures, off: ClusterFigures) -> tuple[StoryCheck, ...]:
    result = on.answers.get(REQUESTS_LIMIT, "")
    return (
        _all_run(on, 30),
        _no_failures(on),
        StoryCheck(f"with the gate off {off.stuck} pods are stuck", off.stuck > 0),
        StoryCheck(f"{REQUESTS_LIMIT} {result}", result == "refused"),
    )


def _two_images(on: ImageFigures, off: ImageFigures) -> tuple[StoryCheck, ...]:
    return (
        StoryCheck(f"{on.manifests} manifests of one image on one node", on.manifests == 2),
        StoryCheck(f"{on.served} of 2 pods have the image of their runtime class", on.served == 2),
        StoryCheck(f"collecting one leaves {on.left}", on.left == 1),
        StoryCheck(f"with the gate off {off.served} of 2 has it", off.served < 2),
    )


def _everything(on: ClusterFigures, off: ClusterFigures) -> tuple[StoryCheck, ...]:
    return (_all_run(on, _PODS), _none_stuck(on, off), _sooner(on, off))


async def _more_quota(client: Client) -> str:
    change = merge({"spec": {"capability": {"cpu": "36"}}})
    await client.patch(Queue, "research", change=change)
    return ""


async def _request_a_limit(client: Client) -> str:
    limit = {"attachable-volumes-azure-disk": "1"}
    container = {"name": "c", "image": "i", "resources": {"requests": limit, "limits": limit}}
    pod: Untyped = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": "requests-limit"},
        "spec": {"containers": [container], "schedulingGates": [{"name": "example.com/never"}]},
    }
    try:
        await client.create(pod)
    except ApiError:
        return "refused"
    await client.delete(Pod, "default", "requests-limit")
    return "accepted"


_LEDGER = (
    "kubectl get pods -o wide",
    "bayplan volumes",
    "bayplan explain --all-pending",
)
STORIES: tuple[AnyStory, ...] = (
    Story(
        1,
        "Attach limit reached",
        "Two nodes have an attach limit of 8 volumes, and 8 attached. At 5:00 twenty pods come,"
        " each with a volume. There is plenty of CPU and memory: only attach slots are missing. The"
        " autoscaler reads the same limit as the scheduler, and adds nodes for all pods at once.",
        "The autoscaler counts only CPU and memory, so it adds one node at a time, each time too"
        " few.",
        VOLUME_LIMIT_SCALING,
        "1-attach-limit-reached.yaml",
        in_cluster(10),
        _attach_limit,
        _LEDGER,
    ),
    Story(
        2,
        "No driver here",
        "One of three nodes never gets the CSI driver. There is no taint and no affinity. Twenty"
        " pods with a volume and six without come: the scheduler keeps the first off that node and"
        " uses it for the others.",
        "A node that reports no attach limit counts as one without a limit: pods are bound to it"
        " and hang.",
        VOLUME_LIMIT_SCALING,
        "2-no-driver-here.yaml",
        in_cluster(4),
        _no_driver,
        ("kubectl get csinodes", *_LEDGER),
    ),
    Story(
        3,
        "From zero",
        "The node group is empty; the attach limit of its nodes, 8 volumes each, is known only from"
        " its template. The same twenty pods come.",
        "The limit of the template is ignored: nodes are added one after another, and pods are"
        " bound to each before its driver is registered.",
        VOLUME_LIMIT_SCALING,
        "3-from-zero.yaml",
        in_cluster(6),
        _from_zero,
        _LEDGER,
    ),
    Story(
        4,
        "The driver that never came",
        "The first node is ready, but its CSI driver never registers. It counts as upcoming, so no"
        " second node is added for the same pods; after ten minutes it is removed and replaced.",
        "The node looks empty: all twenty pods are bound to it and hang, and no node is added,"
        " since the autoscaler sees no pending pod.",
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
        "Twelve pods of one gang request 36 cores, and their queue has 30. The webhook gates them,"
        " so the autoscaler ignores them. At 4:00 the quota is raised to 36: all twelve are ungated"
        " at once, no node fits, nodes are added, they run.",
        "The queue does not admit the pods, but the autoscaler scales up for them: nodes are idle"
        " until the quota is raised.",
        QUEUE_ALLOCATION_GATE,
        "5-queue-says-not-yet.yaml",
        in_cluster(6, StoryAction(240, QUOTA, _more_quota)),
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
        "This driver reports no limit in CSINode. The node agent knows the limit of each VM size"
        " and publishes it in the node's status: 4 disks here, 16 there. The scheduler honours it,"
        " and the autoscaler expects it of new nodes. Twenty pods come, ten more at 5:00.",
        "No limit is published: pods are bound to nodes that cannot attach their disks, and hang in"
        " ContainerCreating.",
        ATTACH_VOLUME_LIMIT,
        "6-old-limits-by-node-type.yaml",
        in_cluster(8, StoryAction(120, REQUESTS_LIMIT, _request_a_limit)),
        _old_limits,
        ("kubectl get nodes -o yaml | grep attachable-volumes", *_LEDGER),
    ),
    Story(
        7,
        "One image, two runtime classes",
        "Two pods on one node use the same image, with two runtime classes for different platforms."
        " The node's agent pulls from a registry on this machine through a CRI service, one"
        " manifest for each class. Then one pod is deleted, and its manifest is garbage-collected.",
        "The node keeps one image for each name: the second pod gets the image that was pulled for"
        " the first.",
        RUNTIME_CLASS_IN_IMAGE_CRI_API,
        "7-one-image-two-runtime-classes.yaml",
        in_images,
        _two_images,
        ("kubectl get runtimeclasses", "kubectl get pods -o wide"),
    ),
    Story(
        8,
        "Everything off",
        "Full nodes, a node without a driver, and one whose driver registers ten minutes late, all"
        " in one cluster.",
        "The failures of stories 1, 2 and 4 all happen here.",
        VOLUME_LIMIT_SCALING,
        "8-everything-off.yaml",
        in_cluster(14),
        _everything,
        _LEDGER,
    ),
)
"""All stories, in order."""
BY_GATE: dict[str, AnyStory] = {
    VOLUME_LIMIT_SCALING: STORIES[0],
    ATTACH_VOLUME_LIMIT: STORIES[5],
    QUEUE_ALLOCATION_GATE: STORIES[4],
    RUNTIME_CLASS_IN_IMAGE_CRI_API: STORIES[6],
}
"""For each gate, the story that shows it best."""
