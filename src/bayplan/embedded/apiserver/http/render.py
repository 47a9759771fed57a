"""Entries as answers: in the version and the form that the client wants."""

from __future__ import annotations

from bayplan.embedded.apiserver.http.responses import Response, json_response
from bayplan.embedded.apiserver.jsontypes import encode
from bayplan.embedded.apiserver.rest.deleting import Deleted
from bayplan.embedded.apiserver.rest.listing import Page
from bayplan.embedded.apiserver.rest.request import Call
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.strategies.table import strategy_of


def render_one(entry: Entry, code: int = 200) -> Response:
    """One object."""
    return Response(entry.data, code)


def render_list(call: Call, page: Page) -> Response:
    """A list; the items are the stored bytes, joined."""
    meta: dict[str, object] = {"resourceVersion": str(page.revision)}
    if page.token:
        meta["continue"] = page.token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    head = encode(
        {"kind": call.kind.list_kind, "apiVersion": call.kind.api_version, "metadata": meta}
    )
    items = b",".join([entry.data for entry in page.entries])
    return Response(b'%b,"items":[%b]}' % (head[:-1], items))


def render_deleted(call: Call, deleted: Deleted) -> Response:
    """What is left of a deleted object: nothing but a Status, or the object on its way."""
    kind = call.kind
    if not deleted.gone or strategy_of(kind.storage).returns_deleted:
        return render_one(deleted.entry)
    details = {
        "name": call.name,
        "group": kind.group,
        "kind": kind.plural,
        "uid": deleted.entry.uid,
    }
    return json_response(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {key: value for key, value in details.items() if value},
        }
    )
