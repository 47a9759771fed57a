import assert from "node:assert/strict";
import { test } from "node:test";
import { format, type Place, parse, START } from "../src/model/place";

test("every place has an address that leads back to it", () => {
  const places: Partial<Place>[] = [
    {},
    { view: "pending", selection: { kind: "waiting", id: "a/b c?&#%<script>" } },
    { by: "memory", colour: "owner", query: "zone:a x&y=1" },
    { view: "events", type: "Warning", at: 12.5 },
    { selection: { kind: "pod", id: "ns/名前" }, look: [1.5, -2.25, 120] },
    { at: 0 },
  ];
  for (const place of places) {
    assert.deepEqual(parse(format({ ...START, ...place })), { ...START, ...place });
  }
});

test("the beginning has the shortest address", () => {
  assert.equal(format(START), "#/bays");
});

test("what is not understood is passed over", () => {
  for (const hash of ["", "#", "#/nowhere?sel=planet/x&at=-1&by=size&look=1,2", "#?%E0%A4%A"]) {
    assert.deepEqual(parse(hash), START);
  }
});
