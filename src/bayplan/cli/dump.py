"""`bayplan dump`: what the other commands read of a cluster, in a file that can be shown."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.base.clock import WallClock
from bayplan.base.suggestions import no_such
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.cluster import report_problems
from bayplan.cli.options.live import asking, version_of
from bayplan.cli.options.source import HERE, ClusterSource
from bayplan.cli.text.output import counted, notices, printable
from bayplan.cli.text.progress import WHOLE, Bar
from bayplan.client.client import Client
from bayplan.kube.codec import KINDS
from bayplan.kube.loading import Collector, Unseen
from bayplan.kube.times import timestamp
from bayplan.observe.permissions import NEEDS, Kind, Needs, note_of, resource_name
from bayplan.observe.reading import allowed_pages, refuse_blindness
from bayplan.recordings.dumps import TELLS_TOO_MUCH, DumpWriter, opened
from bayplan.recordings.privacy import TOO_TELLING, Anonymiser, Pseudonyms

ALL = NEEDS["dump"]


def dump(
    *,
    source: ClusterSource = HERE,
    to: Annotated[
        str, Parameter(help="The file to write; gzipped if it ends in .gz. - is standard output.")
    ] = "-",
    anonymise: Annotated[
        bool, Parameter(negative="", help="Give everything that has a name of its own another one.")
    ] = False,
    salt: Annotated[
        str,
        Parameter(
            show_default=False,
            help="Give the same names as another dump with this salt; whoever knows it can try"
            " out names. Without it, every dump has names of its own.",
        ),
    ] = "",
    kinds: Annotated[
        tuple[str, ...],
        Parameter(
            show_default=False,
            help="Only these kinds, as kubectl names them, with commas; may be repeated.",
        ),
    ] = (),
) -> int:
    """Save what the other commands read of a cluster, without secrets, as one list of objects.

    With -f, `explain`, `plan` and the others answer from it as they would have from the cluster.
    It holds only the fields that they read: no environment, argument or command of a
    container, no Secret or ConfigMap, and of annotations only those that decide something.
    --anonymise also hashes all names, labels and addresses, so that every reference still holds;
    words of Kubernetes and of clouds stay. With -f, a dump that is there is written anew.

    Where -n is given, kinds that may not be listed in all namespaces are read in that one. A file
    is there only when it is whole, and only for its owner to read.

    Exit codes: 0 it was written, 2 bad input, or the cluster could not be read.
    """
    if salt and not anonymise:
        raise BadInput("--salt: only --anonymise gives names")
    needs = _chosen(kinds)
    names = Pseudonyms(salt.encode() or secrets.token_bytes(32))
    with Bar() as bar, opened(to) as stream:
        written = DumpWriter(stream, Anonymiser(names) if anonymise else None)
        if anonymise:
            needs = _without_the_telling(written, needs)
        written.kinds = tuple(kind.__name__ for kind in needs.kinds)
        if source.filename:
            _rewrite(written, source, needs, bar)
        else:
            _stream(written, source, needs, bar)
        written.end()
    _tell(written, to)
    return EXIT_OK


def _without_the_telling(written: DumpWriter, needs: Needs) -> Needs:
    """The kinds whose names can be hidden; that the others are not there is told in the dump."""
    lost = [kind for kind in needs.kinds if kind in TOO_TELLING]
    written.unseen += (Unseen(kind.__name__, TELLS_TOO_MUCH) for kind in lost)
    return Needs(tuple(kind for kind in needs.kinds if kind not in lost), needs.vital)


def _rewrite(written: DumpWriter, source: ClusterSource, needs: Needs, bar: Bar) -> None:
    loaded = source.load("dump", progress=bar)
    written.unseen += loaded.unseen
    written.server_version, written.taken_at = loaded.server_version, loaded.taken_at
    if loaded.read is None:  # what somebody else's dump leaves out, nobody knows
        written.kinds = ()
    written.take_problems(loaded.problems)
    written.take_all(one for one in loaded.objects if isinstance(one, needs.kinds))


def _stream(written: DumpWriter, source: ClusterSource, needs: Needs, bar: Bar) -> None:
    """Page by page, so that memory does not grow with the cluster."""

    async def read(client: Client) -> None:
        written.server_version = await version_of(client)
        written.taken_at = timestamp(WallClock().now())
        # As `read_once`: those who refer to others first.
        for number, kind in enumerate(reversed(needs.kinds)):
            unseen: list[Unseen] = []
            count = 0
            async for page in allowed_pages(client, kind, source.chosen, unseen):
                collector = Collector()
                for item in page.items or ():
                    collector.take(item, KINDS[kind.__name__])
                written.take_all(collector.loaded.objects)
                written.take_problems(collector.loaded.problems)
                report_problems(collector.loaded.problems)
                count += len(page.items or ())
                left = page.metadata.remaining_item_count or 0
                share = (number + count / max(1, count + left)) / len(needs.kinds)
                bar.at(f"Reading {resource_name(kind)}: {count:,}", WHOLE * share)
            refuse_blindness(needs, unseen)
            written.unseen += unseen

    access = ClusterAccess(source.kubeconfig, source.context)
    asking(access, read, source.patience(), source.chosen)


def _chosen(kinds: Iterable[str]) -> Needs:
    """The kinds that were asked for; all, if none was."""
    named = [name.strip().lower() for one in kinds for name in one.split(",") if name.strip()]
    if not named:
        return ALL
    known: dict[str, Kind] = {}
    for kind in ALL.kinds:
        full = resource_name(kind)
        known |= dict.fromkeys((full, full.partition(".")[0], kind.__name__.lower()), kind)
    for name in named:
        if name not in known:
            plurals = sorted({resource_name(kind).partition(".")[0] for kind in ALL.kinds})
            raise BadInput(f"--kinds: {printable(no_such('kind', name[:80], plurals))}")
    wanted = {known[name] for name in named}
    return Needs(tuple(one for one in ALL.kinds if one in wanted), frozenset())


def _tell(written: DumpWriter, to: str) -> None:
    where = "" if to == "-" else f" to {printable(str(Path(to)))}"
    notices().print(f"wrote {counted(written.count, 'object')}{where}")
    for one in written.unseen:
        notices().print(f"note: {printable(note_of(one))}", style="yellow")
