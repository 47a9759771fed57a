"""A cluster's changes in a file: written as they come, read at any moment of it.

    with RecordingWriter(path, name="prod", start=clock.now()) as writer:
        writer.take(0.0, node)
        writer.take(12.5, pod)
        writer.gone(60.0, identity_of(pod))

    with Recording(path) as recording:
        state = recording.state_at(30.0)            # objects by identity, and how far that is
        for change in recording.after(state.seq): ...

The format knows objects, not what anybody makes of them: a replay computes everything anew, by the
same code that works live. docs/recordings.md describes the bytes.
"""

from bayplan.recordings.format import RecordingError
from bayplan.recordings.objects import Identity, Recorded, identity_of
from bayplan.recordings.reader import Change, Recording, State
from bayplan.recordings.writer import RecordingFullError, RecordingWriter

__all__ = [
    "Change",
    "Identity",
    "Recorded",
    "Recording",
    "RecordingError",
    "RecordingFullError",
    "RecordingWriter",
    "State",
    "identity_of",
]
