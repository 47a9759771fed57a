"""CSINodes by node, and which CSI drivers there are at all."""

from __future__ import annotations

from collections import Counter

from bayplan.kube.storage import CSINode


class CSINodes:
    """The CSINode of each node that has one."""

    def __init__(self) -> None:
        self.by_name: dict[str, CSINode] = {}
        self.registered: Counter[str] = Counter()
        """On how many nodes each CSI driver has registered."""
        self.version = 0
        """Moves whenever a driver registers for the first time, or is gone from the last node."""

    def set(self, name: str, csinode: CSINode | None) -> None:
        """A node's CSINode comes, changes or (None) goes."""
        self._register(self.by_name.pop(name, None), -1)
        self._register(csinode, 1)
        if csinode is not None:
            self.by_name[name] = csinode

    def _register(self, csinode: CSINode | None, sign: int) -> None:
        for driver in csinode.spec.drivers if csinode else ():
            before = self.registered[driver.name]
            self.registered[driver.name] = before + sign
            if before == 0 or before + sign == 0:
                self.version += 1
