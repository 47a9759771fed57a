"""Which images nodes already have, for the score that likes a pod's image to be there."""

from __future__ import annotations

from bayplan.fit.shapes.shape import normalized_image
from bayplan.kube.nodes import Node

LARGEST_IMAGE = 1 << 40
"""No image counts for more: far above where the score stops, and no sum of them can wrap."""


class NodeImages:
    """Image name → size by slot."""

    def __init__(self) -> None:
        self._sizes: dict[str, dict[int, int]] = {}

    def set_node(self, slot: int, node: Node, *, present: bool) -> None:
        """A node comes to the slot or leaves it."""
        for image in node.status.images:
            for name in image.names:
                holders = self._sizes.setdefault(name, {})
                if present:
                    holders[slot] = min(max(image.size_bytes, 0), LARGEST_IMAGE)
                else:
                    holders.pop(slot, None)
                    if not holders:
                        del self._sizes[name]

    def holders(self, image: str) -> dict[int, int]:
        """The slots that have an image, with its size there."""
        return self._sizes.get(normalized_image(image), {})
