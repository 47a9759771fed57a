"""Paths inside a root filesystem that cannot lead out of it.

An archive's names and symbolic links are not trusted. Names with `..` are refused. Links are
followed as with the root mounted at `/`: an absolute target starts at the root again, and `..` at
the root stays there. The result is a path whose every parent is a real directory inside the root.
"""

import os
import stat
from collections.abc import Callable

from bayplan.images.registry.errors import IntegrityError

_LINK_LIMIT = 255
_KNOWN_LIMIT = 10_000
DEPTH_LIMIT = 256  # no image nests deeper, and walking trees stays bounded


def clean(name: str) -> tuple[str, ...]:
    """Split an archive's name into components below the root."""
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if ".." in parts:
        raise IntegrityError(f"a layer's entry {name!r} leads out of the root")
    return parts


class RootPath:
    """Resolves names inside one root, with a cache of directories."""

    def __init__(self, root: str, made: Callable[[], None] = lambda: None) -> None:
        self._root = root
        self._made = made  # called for every directory that a name implies
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}

    def forget(self) -> None:
        """Clear the cache: a directory or link was replaced."""
        self._known = {(): ()}

    def absolute(self, parts: tuple[str, ...]) -> str:
        """Return the path of resolved components on this machine."""
        return os.path.join(self._root, *parts)

    def parent(self, parts: tuple[str, ...], *, create: bool) -> tuple[str, ...]:
        """Resolve the directory of a name; missing ones are created if `create`."""
        directory = parts[:-1]
        known = self._known.get(directory)
        if known is None:
            known = self._walk(directory, create=create)
            if len(known) >= DEPTH_LIMIT:
                raise IntegrityError(f"a layer nests more than {DEPTH_LIMIT} directories")
            if len(self._known) >= _KNOWN_LIMIT:
                self.forget()
            self._known[directory] = known
        return known

    def is_direct(self, parts: tuple[str, ...]) -> bool:
        """Return whether a resolved name is still reached without a link."""
        try:
            return self.parent(parts, create=False) == parts[:-1]
        except IntegrityError:
            return False

    def _walk(self, wanted: tuple[str, ...], *, create: bool) -> tuple[str, ...]:
        if len(wanted) >= DEPTH_LIMIT:
            raise IntegrityError(f"a layer nests more than {DEPTH_LIMIT} directories")
        resolved: list[str] = []
        todo = list(reversed(wanted))
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                del resolved[-1:]
                continue
            target = self._step((*resolved, part), create=create)
            if target is None:
                resolved.append(part)
                continue
            links += 1
            if links > _LINK_LIMIT:
                raise IntegrityError(f"a layer's entry below {'/'.join(wanted)!r} loops over links")
            if target.startswith("/"):
                resolved.clear()
            todo.extend(reversed([p for p in target.split("/") if p not in {"", "."}]))
        return tuple(resolved)

    def _step(self, parts: tuple[str, ...], *, create: bool) -> str | None:
        """Return the target of a link; None for a directory."""
        path = self.absolute(parts)
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            if not create:
                raise IntegrityError(
                    f"a layer refers to {'/'.join(parts)!r}, which does not exist"
                ) from None
            self._made()
            os.mkdir(path, 0o755)
            return None
        if stat.S_ISLNK(mode):
            return os.readlink(path)
        if not stat.S_ISDIR(mode):
            raise IntegrityError(
                f"a layer has entries below {'/'.join(parts)!r}, which is not a directory"
            )
        return None


_Tree = dict[str, "_Tree"]


class PathSet:
    """A set of paths as a tree, which stores common prefixes once."""

    def __init__(self) -> None:
        self._tree: _Tree = {}

    def add(self, parts: tuple[str, ...]) -> None:
        """Add a path, with every path above it."""
        node = self._tree
        for part in parts:
            node = node.setdefault(part, {})

    def __contains__(self, parts: tuple[str, ...]) -> bool:
        node = self._tree
        for part in parts:
            if part not in node:
                return False
            node = node[part]
        return True
