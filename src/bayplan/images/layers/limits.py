"""Bounds against archives that unpack to far more than they are, and chain identifiers."""

import hashlib

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """What a single layer may at most unpack to."""

    size: int = 64 * 1024**3
    entries: int = 2_000_000  # directories that only names imply included
    ratio: int = 200  # expanded over compressed, once a layer expands beyond the floor
    ratio_floor: int = 1024**3
    header: int = 1024**2  # one entry's headers, extended attributes included
    names: int = 128 * 1024**2  # all names together, as they are remembered

    def expanded(self, compressed: int) -> int:
        """Say how many bytes a blob of this size may expand to."""
        return min(self.size, max(self.ratio_floor, self.ratio * compressed))


def chain_ids(diff_ids: tuple[str, ...]) -> list[str]:
    """Name each layer together with everything below it, as the OCI image spec does."""
    chains: list[str] = []
    for diff_id in diff_ids:
        if chains:
            joined = hashlib.sha256(f"{chains[-1]} {diff_id}".encode()).hexdigest()
            chains.append(f"sha256:{joined}")
        else:
            chains.append(diff_id)
    return chains
