"""VolumeAttachments, by name, by node and by volume."""

from __future__ import annotations

from bayplan.fit.index import Index
from bayplan.kube.storage import VolumeAttachment


class VolumeAttachments:
    """Wishes to have volumes attached, and where."""

    def __init__(self) -> None:
        self.by_name: dict[str, VolumeAttachment] = {}
        self._of_node = Index()
        self._of_volume = Index()

    def put(self, attachment: VolumeAttachment) -> None:
        """Add an attachment that is not there."""
        self.by_name[attachment.name] = attachment
        self._of_node.add(attachment.spec.node_name, attachment.name)
        self._of_volume.add(volume_name(attachment), attachment.name)

    def remove(self, name: str) -> VolumeAttachment | None:
        """Take an attachment out; returns it, if it was there."""
        attachment = self.by_name.pop(name, None)
        if attachment is not None:
            self._of_node.discard(attachment.spec.node_name, name)
            self._of_volume.discard(volume_name(attachment), name)
        return attachment

    def of_node(self, node: str) -> list[VolumeAttachment]:
        """The attachments of a node."""
        return [self.by_name[name] for name in sorted(self._of_node.of(node))]

    def of_volume(self, volume: str) -> list[VolumeAttachment]:
        """The attachments of a persistent volume."""
        return [self.by_name[name] for name in sorted(self._of_volume.of(volume))]


def volume_name(attachment: VolumeAttachment) -> str:
    """The name of the volume that is to be attached; empty for one without a PersistentVolume."""
    return attachment.spec.source.persistent_volume_name or ""
