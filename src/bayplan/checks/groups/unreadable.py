"""What was read and could not be used: whatever is said of a cluster is said without it."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural, shortened

LEFT_OUT = CheckKind(
    "ObjectsLeftOut",
    Severity.WARNING,
    "objects cannot be used: a field has a value that it cannot have",
    "Nothing that is said here counts them, and other programs stumble over them too.",
    "Correct them; each message names the field and the value.",
)
KINDS = (LEFT_OUT,)


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """The objects that were left out."""
    examples = [Example(one.identity, shortened(str(one))) for one in subject.left_out]
    if examples:
        text = f"{plural(len(examples), 'object')} that cannot be used"
        yield found(LEFT_OUT, "object", examples, text)
