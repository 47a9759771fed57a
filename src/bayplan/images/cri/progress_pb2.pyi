from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class WatchRequest(_message.Message):
    __slots__ = ("image", "runtime_handler")
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_HANDLER_FIELD_NUMBER: _ClassVar[int]
    image: str
    runtime_handler: str
    def __init__(self, image: _Optional[str] = ..., runtime_handler: _Optional[str] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("digest", "phase", "done", "total")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    digest: str
    phase: str
    done: int
    total: int
    def __init__(self, digest: _Optional[str] = ..., phase: _Optional[str] = ..., done: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...
