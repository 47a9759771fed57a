"""What a clean-up after the gate's switch touches: pure choices over pods and images.

Only pods with a runtime class got other images because of the gate; those that no controller would
bring back are left alone unless told otherwise. Every image goes that is neither pinned nor needed
by a pod that stays: a pod without a runtime class needs the default handler's images, which are the
right ones whatever the gate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.images.runtime.objects import Image, ImageKey
from bayplan.kube.imagereferences import InvalidReferenceError, parse_image
from bayplan.kube.pods import Pod


@dataclass(frozen=True, slots=True)
class PodChoice:
    """Which pods are restarted, which would not come back, and which the gate does not concern."""

    restart: tuple[Pod, ...] = ()
    leave: tuple[Pod, ...] = ()
    unconcerned: tuple[Pod, ...] = ()


def choose_pods(pods: Iterable[Pod], *, without_controller: bool) -> PodChoice:
    """Sort a node's living pods by what a clean-up does with them."""
    restart: list[Pod] = []
    leave: list[Pod] = []
    unconcerned: list[Pod] = []
    for pod in pods:
        if pod.is_terminal:
            continue
        if not pod.spec.runtime_class_name:
            unconcerned.append(pod)
        elif pod.is_terminating:
            continue  # it goes by itself
        elif pod.metadata.controller is not None or without_controller:
            restart.append(pod)
        else:
            leave.append(pod)
    return PodChoice(tuple(restart), tuple(leave), tuple(unconcerned))


def stale_images(images: Iterable[Image], pods: PodChoice) -> set[ImageKey]:
    """The images that have to go."""
    stays = _names(pods.unconcerned)
    left_alone = _names(pods.leave)
    return {
        image.key
        for image in images
        if not image.pinned
        and left_alone.isdisjoint(image.names)
        and (image.handler or stays.isdisjoint(image.names))
    }


def _names(pods: Iterable[Pod]) -> set[str]:
    """The names of the pods' images, as runtimes list them."""
    names = set()
    for pod in pods:
        for container in [*pod.spec.init_containers, *pod.spec.containers]:
            try:
                names.add(str(parse_image(container.image).with_default_tag()))
            except InvalidReferenceError:
                continue
    return names
