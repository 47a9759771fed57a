"""Applying one layer's archive to a root filesystem.

All paths are resolved by `RootPath`, so nothing is created outside of the root. Files are replaced,
never opened for writing, since they may be shared with the layer below. Device nodes are skipped: a
container gets its devices from its runtime. Whiteouts remove files of lower layers, never of this
layer.
"""

import contextlib
import os
import shutil
import stat
import tarfile
from collections.abc import Callable
from typing import NamedTuple

from bayplan.images.layers.headers import XATTR, LayerMember, Sparse, check_sparse, copy_pieces
from bayplan.images.layers.rootpath import PathSet, RootPath, clean
from bayplan.images.layers.streams import LayerStream, UnpackLimits
from bayplan.images.registry.errors import IntegrityError

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_RESERVED = ".wh..wh."
# trusted.* would let a layer control overlayfs; the rest has no meaning inside an image.
_XATTRS = ("user.", "security.capability")
_SLACK = 64 * 1024
_Parts = tuple[str, ...]


class _Finish(NamedTuple):
    """A directory's metadata, set after its content; small, since a layer may have very many."""

    mode: int
    uid: int
    gid: int
    mtime: float


class LayerApplier:
    """Unpacks archives of one layer into one root."""

    def __init__(self, root: str, limits: UnpackLimits) -> None:
        self._root = RootPath(root, self._count)
        self._limits = limits
        self._entries = self._names = 0
        self._added = PathSet()
        self._directories: dict[str, _Finish] = {}
        self._privileged = os.geteuid() == 0
        self._makers: dict[bytes, Callable[[_Parts, tarfile.TarInfo], None]] = {
            tarfile.DIRTYPE: self._directory,
            tarfile.SYMTYPE: self._symlink,
            tarfile.LNKTYPE: self._hard_link,
            tarfile.FIFOTYPE: self._fifo,
        }

    def apply(self, stream: LayerStream) -> None:
        """Unpack a whole archive."""
        stream.allow(self._limits.header)
        try:
            with tarfile.open(  # type: ignore[call-overload]
                fileobj=stream, mode="r|", bufsize=_SLACK, tarinfo=LayerMember
            ) as archive:
                self._members(archive, stream)
            self._finish_directories()
        except RecursionError:
            raise IntegrityError("a layer has too many nested headers") from None
        except (tarfile.TarError, ValueError, OverflowError, IndexError) as error:
            raise IntegrityError(f"a layer is not a readable archive: {error}") from error

    def _members(self, archive: tarfile.TarFile, stream: LayerStream) -> None:
        while (member := self._next(archive, stream)) is not None:
            self._count()
            self._names += len(member.name)
            if self._names > self._limits.names:
                raise IntegrityError(f"a layer has more than {self._limits.names} bytes of names")
            stream.allow(member.size + self._limits.header)
            self._member(archive, member, stream)
            # The archive keeps every member; a layer may have millions.
            archive.members = []  # type: ignore[attr-defined]

    def _count(self) -> None:
        self._entries += 1
        if self._entries > self._limits.entries:
            raise IntegrityError(f"a layer has more than {self._limits.entries} entries")

    def _next(self, archive: tarfile.TarFile, stream: LayerStream) -> tarfile.TarInfo | None:
        member = archive.next()
        if member is not None and not 0 <= member.size <= self._limits.size:
            raise IntegrityError(f"a layer's entry {member.name!r} is of impossible size")
        stream.allow(self._limits.header)
        return member

    def _member(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, stream: LayerStream
    ) -> None:
        parts = clean(member.name)
        if parts and parts[-1].startswith(_WHITEOUT):
            self._whiteout(parts)
        elif member.isreg():
            pieces = check_sparse(member)
            stream.count(0 if pieces is None else member.size - sum(size for _, size in pieces))
            self._regular(parts, member, archive, pieces)
        elif maker := self._makers.get(member.type):
            maker(parts, member)

    # --- whiteouts: files of lower layers are removed ---

    def _whiteout(self, parts: _Parts) -> None:
        name = parts[-1]
        try:
            directory = self._root.parent(parts, create=False)
        except IntegrityError:
            return  # there is nothing to remove
        if name == _OPAQUE:
            self._make_opaque(directory)
        elif not name.startswith(_RESERVED):
            hidden = name.removeprefix(_WHITEOUT)
            if hidden in {"", ".", ".."}:
                raise IntegrityError(f"a layer has the whiteout {'/'.join(parts)!r} of nothing")
            self._hide((*directory, hidden))

    def _make_opaque(self, directory: _Parts) -> None:
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._root.absolute(directory)):
                self._hide((*directory, name))

    def _hide(self, parts: _Parts) -> None:
        path = self._root.absolute(parts)
        if parts not in self._added:
            self._remove(path)
        elif os.path.isdir(path) and not os.path.islink(path):
            # This layer's directory stays, the files of lower layers in it are removed.
            self._make_opaque(parts)

    # --- files of this layer ---

    def _regular(
        self,
        parts: _Parts,
        member: tarfile.TarInfo,
        archive: tarfile.TarFile,
        pieces: Sparse | None,
    ) -> None:
        path = self._prepare_path(parts, member)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            copy_pieces(archive, file, member, [(0, member.size)] if pieces is None else pieces)
        self._metadata(path, member)

    def _directory(self, parts: _Parts, member: tarfile.TarInfo) -> None:
        resolved = self._resolved(parts)
        if _is_directory(self._root.absolute(resolved)):
            self._mark(resolved)
        else:
            os.mkdir(self._prepare_path(parts, member), 0o700)
        self._attributes(self._root.absolute(resolved), member)
        finish = _Finish(member.mode & 0o7777, member.uid, member.gid, max(member.mtime, 0))
        self._directories["/".join(resolved)] = finish

    def _symlink(self, parts: _Parts, member: tarfile.TarInfo) -> None:
        if not member.linkname:
            raise IntegrityError(f"a layer's link {member.name!r} has no target")
        path = self._prepare_path(parts, member)
        os.symlink(member.linkname, path)
        if self._privileged:
            os.lchown(path, member.uid, member.gid)
        seconds = max(member.mtime, 0)
        os.utime(path, (seconds, seconds), follow_symlinks=False)

    def _hard_link(self, parts: _Parts, member: tarfile.TarInfo) -> None:
        target = clean(member.linkname)
        source = self._root.absolute((*self._root.parent(target, create=False), *target[-1:]))
        if not os.path.lexists(source) or _is_directory(source):
            raise IntegrityError(f"a layer links {member.name!r} to {member.linkname!r}: no file")
        if self._resolved(parts) == self._resolved(target):
            return
        os.link(source, self._prepare_path(parts, member), follow_symlinks=False)

    def _fifo(self, parts: _Parts, member: tarfile.TarInfo) -> None:
        path = self._prepare_path(parts, member)
        os.mkfifo(path, 0o600)
        self._metadata(path, member)

    def _resolved(self, parts: _Parts) -> _Parts:
        return (*self._root.parent(parts, create=True), *parts[-1:])

    def _prepare_path(self, parts: _Parts, member: tarfile.TarInfo) -> str:
        """Return the path of an entry; what was there before is removed."""
        if not parts:
            raise IntegrityError(f"a layer's entry {member.name!r} would replace the root")
        resolved = self._resolved(parts)
        path = self._root.absolute(resolved)
        self._remove(path)
        self._mark(resolved)
        return path

    def _mark(self, resolved: _Parts) -> None:
        """Record a name, and the directories above it, as this layer's."""
        self._added.add(resolved)

    def _remove(self, path: str) -> None:
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        if stat.S_ISDIR(mode) or stat.S_ISLNK(mode):
            self._root.forget()

    # --- metadata ---

    def _metadata(self, path: str, member: tarfile.TarInfo) -> None:
        finish = _Finish(member.mode & 0o7777, member.uid, member.gid, max(member.mtime, 0))
        self._finish(path, finish, member)

    def _finish(self, path: str, finish: _Finish, member: tarfile.TarInfo | None = None) -> None:
        if self._privileged:
            os.chown(path, finish.uid, finish.gid)
        os.chmod(path, finish.mode)
        if member is not None:
            # After the change of owner, which removes capabilities.
            self._attributes(path, member)
        os.utime(path, (finish.mtime, finish.mtime))

    def _attributes(self, path: str, member: tarfile.TarInfo) -> None:
        for name, value in member.pax_headers.items():
            if name.startswith(XATTR):
                _set_attribute(path, name.removeprefix(XATTR), value)

    def _finish_directories(self) -> None:
        # Last, because filling a directory changes its times, and its mode may forbid filling it.
        # Whatever was replaced by a link since is left alone.
        self._root.forget()
        for name, finish in reversed(self._directories.items()):
            parts = clean(name)
            path = self._root.absolute(parts)
            if self._root.is_direct(parts) and _is_directory(path):
                self._finish(path, finish)


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _set_attribute(path: str, name: str, value: str) -> None:
    if name.startswith(_XATTRS):
        # Not every file system has them, and not every user may set them.
        with contextlib.suppress(OSError):
            os.setxattr(path, name, value.encode("utf-8", "surrogateescape"), follow_symlinks=False)
