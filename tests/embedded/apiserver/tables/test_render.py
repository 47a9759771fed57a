"""Tables and partial objects."""

from __future__ import annotations

import json
from typing import Any

from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from tests.embedded.apiserver.configmaps import CMS, config_map
from tests.embedded.apiserver.http_client import Http

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def _json(body: Any) -> Any:
    return body if isinstance(body, dict) else json.loads(body)


async def test_tables_have_cells_and_metadata(http: Http) -> None:
    await http.post(CMS, config_map("a", x="1"))
    table = (await http.get(CMS, Accept=TABLE)).body
    assert table["kind"] == "Table"
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    (row,) = table["rows"]
    assert row["cells"][:2] == ["a", 1]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    bare = (await http.get(f"{CMS}?includeObject=None", Accept=TABLE)).body
    assert bare["rows"][0]["object"] is None
    one = (await http.get(f"{CMS}/a", Accept=TABLE)).body
    assert one["rows"][0]["cells"][0] == "a"


async def test_every_kind_can_be_shown_as_a_table(http: Http) -> None:
    for kind in BUILTIN:
        if "list" not in kind.verbs:
            continue
        root = f"/apis/{kind.group}" if kind.group else "/api"
        table = await http.get(f"{root}/{kind.version}/{kind.plural}", Accept=TABLE)
        assert (table.code, table.body["kind"]) == (200, "Table"), kind


async def test_a_watch_can_be_of_tables(http: Http) -> None:
    await http.post(CMS, config_map("a"))
    headers = {"Accept": TABLE}
    async with http.session.get(f"{CMS}?watch=1", headers=headers) as response:
        line = await response.content.readline()
    event = _json(line)
    assert (event["type"], event["object"]["kind"]) == ("ADDED", "Table")


async def test_metadata_alone_can_be_asked_for(http: Http) -> None:
    await http.post(CMS, config_map("a", x="1"))
    one = (await http.get(f"{CMS}/a", Accept=PARTIAL)).body
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    assert "data" not in one
    accept = PARTIAL.replace("Metadata;", "MetadataList;")
    many = (await http.get(CMS, Accept=accept)).body
    assert many["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in many["items"]] == ["a"]
