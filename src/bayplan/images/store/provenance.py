"""Where content is from: which repositories delivered or proved each blob, and what layers hold.

That a blob is on this node says nothing about who may have it. A registry that names the digest of
another's private content must not be given it, so content counts as present only for repositories
that it is known to be in: those that sent the bytes, and those of a registry that once sent them
and now says that this repository has them too. A registry's word about content that it never sent
is worth nothing.

Unpacked chains are named by what their layers expand to, which an image merely claims. So that is
remembered by blob as well, once it has been seen: who has the blobs has what they expand to.
"""

from collections import defaultdict
from collections.abc import Iterable

from bayplan.kube.imagereferences import Repository

SourceRow = tuple[str, str, str]
"""A blob's digest, and a registry and repository that have it."""


class Provenance:
    """What is known of the blobs that are here."""

    def __init__(self, sources: Iterable[SourceRow], contents: dict[str, str]) -> None:
        self._sources: defaultdict[str, set[Repository]] = defaultdict(set)
        for digest, registry, path in sources:
            self.prove(digest, Repository(registry, path))
        self._contents = dict(contents)

    def prove(self, digest: str, repository: Repository) -> None:
        """Note that a repository has a blob."""
        self._sources[digest].add(repository)

    def is_proved(self, digest: str, repository: Repository) -> bool:
        """Say whether a repository is known to have a blob."""
        return repository in self._sources.get(digest, ())

    def is_known_to(self, digest: str, registry: str) -> bool:
        """Say whether a registry has ever sent a blob, for whichever repository."""
        return any(one.registry == registry for one in self._sources.get(digest, ()))

    def unpacks_to(self, digest: str, diff_id: str) -> None:
        """Note what a layer's blob was seen to expand to."""
        self._contents[digest] = diff_id

    def content_of(self, digest: str) -> str | None:
        """Say what a layer's blob expands to, if that has been seen."""
        return self._contents.get(digest)

    def forget(self, digest: str) -> None:
        """Note that a blob is gone."""
        self._sources.pop(digest, None)
        self._contents.pop(digest, None)

    def source_rows(self, digests: Iterable[str]) -> list[SourceRow]:
        """List where blobs are from, to be written down."""
        return [
            (digest, one.registry, one.path)
            for digest in digests
            for one in sorted(self._sources.get(digest, ()))
        ]

    def contents(self, digests: Iterable[str]) -> dict[str, str]:
        """Give what layers expand to, to be written down."""
        return {digest: self._contents[digest] for digest in digests if digest in self._contents}
