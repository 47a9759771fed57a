"""`bayplan dump`: save the objects that the other commands read, without secrets."""

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
from bayplan.cli.text.progress import WHOLE, ProgressBar
from bayplan.client.client import Client
from bayplan.kube.codec import KINDS
from bayplan.kube.manifests import Collector, UnseenKind
from bayplan.kube.times import timestamp
from bayplan.observe.permissions import (
    KINDS_BY_COMMAND,
    Kind,
    RequiredKinds,
    describe_unseen,
    resource_name,
)
from bayplan.observe.reader import allowed_pages, check_required
from bayplan.recordings.dumps import EXCLUDED_FROM_ANONYMISED, DumpWriter, open_dump
from bayplan.recordings.privacy import NOT_ANONYMISABLE, Anonymiser, Pseudonyms

ALL = KINDS_BY_COMMAND["dump"]


def dump(
    *,
    source: ClusterSource = HERE,
    to: Annotated[
        str, Parameter(help="The file to write, gzipped if it ends in .gz; - for standard output.")
    ] = "-",
    anonymise: Annotated[
        bool, Parameter(negative="", help="Replace names, labels and addresses with pseudonyms.")
    ] = False,
    salt: Annotated[
        str,
        Parameter(
            show_default=False,
            help="A salt for pseudonyms: dumps with the same salt have the same ones. Keep it"
            " secret, since names can be guessed with it. By default it is random.",
        ),
    ] = "",
    kinds: Annotated[
        tuple[str, ...],
        Parameter(
            show_default=False,
            help="Only these kinds, by kubectl's names, separated by commas; may be repeated.",
        ),
    ] = (),
) -> int:
    """Save the objects that the other commands read, without secrets, as one list.

    Use the file with -f of `explain`, `plan` and the others; the results are the same as on the
    cluster. It contains only the fields that they read: no environment variables, arguments or
    commands of containers, no Secrets or ConfigMaps, and only annotations that affect decisions.
    --anonymise also replaces names, labels and addresses; references still match, and well-known
    names of Kubernetes and clouds are kept. With -f, an existing dump is rewritten.

    With -n, kinds that may not be listed in all namespaces are read in that namespace. The file
    appears only when it is complete, and only its owner may read it.

    Exit codes: 0 it was written, 2 bad input, or the cluster cannot be read.
    """
    if salt and not anonymise:
        raise BadInput("--salt: needs --anonymise")
    needs = _chosen(kinds)
    names = Pseudonyms(salt.encode() or secrets.token_bytes(32))
    with ProgressBar() as bar, open_dump(to) as stream:
        written = DumpWriter(stream, Anonymiser(names) if anonymise else None)
        if anonymise:
            needs = _without_not_anonymisable(written, needs)
        written.kinds = tuple(kind.__name__ for kind in needs.kinds)
        if source.filename:
            _rewrite(written, source, needs, bar)
        else:
            _stream(written, source, needs, bar)
        written.end()
    _report(written, to)
    return EXIT_OK


def _without_not_anonymisable(written: DumpWriter, needs: RequiredKinds) -> RequiredKinds:
    """Leave out kinds whose content cannot be anonymised, and record that in the dump."""
    lost = [kind for kind in needs.kinds if kind in NOT_ANONYMISABLE]
    written.unseen += (UnseenKind(kind.__name__, EXCLUDED_FROM_ANONYMISED) for kind in lost)
    return RequiredKinds(tuple(kind for kind in needs.kinds if kind not in lost), needs.vital)


def _rewrite(
    written: DumpWriter, source: ClusterSource, needs: RequiredKinds, bar: ProgressBar
) -> None:
    loaded = source.load("dump", progress=bar)
    written.unseen += loaded.unseen
    written.server_version, written.taken_at = loaded.server_version, loaded.taken_at
    if loaded.read is None:  # a dump of another program does not record what it left out
        written.kinds = ()
    written.record_problems(loaded.problems)
    written.write_objects(one for one in loaded.objects if isinstance(one, needs.kinds))


def _stream(
    written: DumpWriter, source: ClusterSource, needs: RequiredKinds, bar: ProgressBar
) -> None:
    """Read and write page by page, so that memory does not grow with the cluster."""

    async def read(client: Client) -> None:
        written.server_version = await version_of(client)
        written.taken_at = timestamp(WallClock().now())
        # In the order of `read_once`: referring objects before those they refer to.
        for number, kind in enumerate(reversed(needs.kinds)):
            unseen: list[UnseenKind] = []
            count = 0
            async for page in allowed_pages(client, kind, source.chosen, unseen):
                collector = Collector()
                for item in page.items or ():
                    collector.take(item, KINDS[kind.__name__])
                written.write_objects(collector.loaded.objects)
                written.record_problems(collector.loaded.problems)
                report_problems(collector.loaded.problems)
                count += len(page.items or ())
                left = page.metadata.remaining_item_count or 0
                share = (number + count / max(1, count + left)) / len(needs.kinds)
                bar.at(f"Reading {resource_name(kind)}: {count:,}", WHOLE * share)
            check_required(needs, unseen)
            written.unseen += unseen

    access = ClusterAccess(source.kubeconfig, source.context)
    asking(access, read, source.patience(), source.chosen)


def _chosen(kinds: Iterable[str]) -> RequiredKinds:
    """Return the given kinds; all if none is given."""
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
    return RequiredKinds(tuple(one for one in ALL.kinds if one in wanted), frozenset())


def _report(written: DumpWriter, to: str) -> None:
    where = "" if to == "-" else f" to {printable(str(Path(to)))}"
    notices().print(f"wrote {counted(written.count, 'object')}{where}")
    for one in written.unseen:
        notices().print(f"note: {printable(describe_unseen(one))}", style="yellow")
