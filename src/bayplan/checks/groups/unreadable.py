"""Invalid objects, which all other checks ignore."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import (
    CheckKind,
    Example,
    Finding,
    Severity,
    make_finding,
    plural,
    shortened,
)

LEFT_OUT = CheckKind(
    "ObjectsLeftOut",
    Severity.WARNING,
    "objects are invalid: a field has a value that is not allowed",
    "They are ignored by all checks and commands, and may break other programs.",
    "Correct them; each message has the field and the value.",
)
KINDS = (LEFT_OUT,)


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield a finding about the objects that were ignored."""
    examples = [Example(one.identity, shortened(str(one))) for one in cluster.left_out]
    if examples:
        text = f"{plural(len(examples), 'invalid object')}"
        yield make_finding(LEFT_OUT, "object", examples, text)
