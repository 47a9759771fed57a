"""Encoding of entries in the version and format that the client wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayplan.base.clock import Clock
from bayplan.embedded.apiserver.errors import StatusError, bad_request
from bayplan.embedded.apiserver.http.urls import Query
from bayplan.embedded.apiserver.http.wire.responses import Response, ResponseFormat, json_response
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode, encode
from bayplan.embedded.apiserver.kinds.catalog import conversion_of
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.rest.deletion import DeleteResult
from bayplan.embedded.apiserver.rest.reads import ListPage
from bayplan.embedded.apiserver.schema.types import package_of
from bayplan.embedded.apiserver.store.entry import StoreEntry
from bayplan.embedded.apiserver.strategies.table import strategy_of
from bayplan.embedded.apiserver.tables.render import partial, table

_INCLUDES = ("", "None", "Metadata", "Object")


class Renderer:
    """Encodes entries of one kind for one client."""

    def __init__(self, kind: ServedKind, form: ResponseFormat, query: Query, clock: Clock) -> None:
        self._kind = kind
        self._form = form
        self._clock = clock
        self._begins = encode({"kind": kind.kind, "apiVersion": kind.api_version})[:-1] + b","
        self._include = query.get("includeObject", "")
        if form.transform == "Table" and self._include not in _INCLUDES:
            raise bad_request(
                "Unable to convert to Table as requested: includeObject: Invalid value: "
                f"\"{self._include}\": must be 'Metadata', 'Object', 'None', or empty"
            )

    def one(self, entry: StoreEntry, code: int = 200) -> Response:
        """Encode one object."""
        if self._form.transform == "PartialObjectMetadataList":
            raise self._other_form("is not a list", self._kind.kind)
        return self._response(self._data(entry), code)

    def page(self, page: ListPage) -> Response:
        """Encode a list; without conversion the items are the stored bytes, joined."""
        transform = self._form.transform
        meta = _list_meta(page, custom=self._kind.custom is not None and not transform)
        if transform == "Table":
            return self._response(encode(self._table(page.entries, meta)))
        if transform == "PartialObjectMetadata":
            raise self._other_form("is a list", self._kind.list_kind)
        head = {"kind": self._kind.list_kind, "apiVersion": self._kind.api_version}
        if transform:
            head = {"kind": "PartialObjectMetadataList", "apiVersion": self._form.meta_version}
        return self._response(_joined({**head, "metadata": meta}, self._items(page.entries)))

    def _other_form(self, what: str, kind: str) -> StatusError:
        inner = f"{package_of(self._kind.group)}.{kind}"
        if self._kind.custom is not None:
            inner = "unstructured.Unstructured" + ("List" if kind.endswith("List") else "")
        wanted = f"you requested {self._form.transform}, but the requested object"
        return StatusError(406, "NotAcceptable", f"{wanted} {what} (*{inner})")

    def deleted(self, deleted: DeleteResult) -> Response:
        """Encode the result of a delete: a Status, or the terminating object."""
        kind, entry = self._kind, deleted.entry
        if not deleted.gone or strategy_of(kind.storage).returns_deleted:
            return self.one(entry)
        details = {
            "name": entry.key.name,
            "group": kind.group,
            "kind": kind.plural,
            "uid": entry.uid,
        }
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return json_response({**status, "details": {k: v for k, v in details.items() if v}})

    def for_watch(self) -> Callable[[StoreEntry], bytes] | None:
        """Return how a watch encodes an object; None for the stored bytes."""
        return None if self._is_plain() else self._data

    def _is_plain(self) -> bool:
        return not self._form.transform and conversion_of(self._kind) is None

    def _data(self, entry: StoreEntry) -> bytes:
        if self._is_plain():
            return entry.data
        if self._form.transform == "Table":
            meta = {"resourceVersion": str(entry.revision)}
            return encode(self._table((entry,), meta))
        obj = self._view(entry)
        return encode(partial(obj, self._form.meta_version) if self._form.transform else obj)

    def _items(self, entries: Sequence[StoreEntry]) -> bytes:
        """Return the items of a list; only custom resources have apiVersion and kind there."""
        if self._form.transform or self._kind.custom is not None:
            return b",".join([self._data(entry) for entry in entries])
        if conversion_of(self._kind) is not None:
            return b",".join([encode(_untyped(self._view(entry))) for entry in entries])
        begun = len(self._begins)
        items = [
            entry.data[begun:]
            if entry.data.startswith(self._begins)
            else encode(_untyped(entry.object()))[1:]
            for entry in entries
        ]
        return b"{" + b",{".join(items) if items else b""

    def _view(self, entry: StoreEntry) -> JsonObject:
        obj, view = entry.object(), conversion_of(self._kind)
        return obj if view is None else view.shown(obj)

    def _table(self, entries: Sequence[StoreEntry], meta: JsonObject) -> JsonObject:
        objects = (entry.object() for entry in entries)
        made = table(self._kind, objects, self._clock.now(), self._include)
        made["apiVersion"] = self._form.meta_version
        made["metadata"] = meta
        return made

    def _response(self, data: bytes, code: int = 200) -> Response:
        if self._form.media_type == "application/yaml" and len(data) <= _MAX_YAML_BYTES:
            data = _yaml(decode(data))
        return Response(data, code, self._form.content_type)


def _untyped(obj: JsonObject) -> JsonObject:
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def _list_meta(page: ListPage, *, custom: bool) -> JsonObject:
    """Return the metadata of a list; that of custom resources always has `continue`."""
    meta: JsonObject = {"resourceVersion": str(page.revision)}
    if page.token or custom:
        meta["continue"] = page.token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    return meta


def _joined(head: JsonObject, items: bytes) -> bytes:
    return b'%b,"items":[%b]}' % (encode(head)[:-1], items)


_MAX_YAML_BYTES = 128 * 1024
"""Size in bytes above which YAML responses are written as JSON, which is faster."""


def _yaml(value: JsonValue) -> bytes:
    import yaml  # noqa: PLC0415 - YAML responses are rare

    return yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, encoding="utf-8")
