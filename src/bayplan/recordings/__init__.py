"""A cluster's changes in a file: written as they come, read as of any moment.

    with RecordingWriter(path, name="prod", start=clock.now()) as writer:
        writer.record(0.0, node)
        writer.record(12.5, pod)
        writer.record_deletion(60.0, identity_of(pod))

    with Recording(path) as recording:
        state = recording.state_at(30.0)            # objects by identity, and the last change
        for change in recording.after(state.seq): ...

The format has objects only, no decisions: a replay computes everything again, by the same code that
runs live. docs/recordings.md describes the bytes.
"""

from bayplan.recordings.format import RecordingError
from bayplan.recordings.objects import ObjectIdentity, RecordedObject, identity_of
from bayplan.recordings.reader import RecordedChange, RecordedState, Recording
from bayplan.recordings.writer import RecordingFullError, RecordingWriter

__all__ = [
    "ObjectIdentity",
    "RecordedChange",
    "RecordedObject",
    "RecordedState",
    "Recording",
    "RecordingError",
    "RecordingFullError",
    "RecordingWriter",
    "identity_of",
]
