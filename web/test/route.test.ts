import assert from "node:assert/strict";
import { test } from "node:test";
import { formatRoute, parseRoute, type Route, START } from "../src/model/route";

test("every route has an address that leads back to it", () => {
  const routes: Partial<Route>[] = [
    {},
    { view: "pending", selection: { kind: "pending", id: "a/b c?&#%<script>" } },
    { by: "memory", colour: "owner", query: "zone:a x&y=1" },
    { view: "events", type: "Warning", at: 12.5 },
    { selection: { kind: "pod", id: "ns/名前" }, look: [1.5, -2.25, 120] },
    { at: 0 },
  ];
  for (const route of routes) {
    assert.deepEqual(parseRoute(formatRoute({ ...START, ...route })), { ...START, ...route });
  }
});

test("the beginning has the shortest address", () => {
  assert.equal(formatRoute(START), "#/bays");
});

test("what is not understood is passed over", () => {
  for (const hash of ["", "#", "#/nowhere?sel=planet/x&at=-1&by=size&look=1,2", "#?%E0%A4%A"]) {
    assert.deepEqual(parseRoute(hash), START);
  }
});

test("links with the older names of views and selections still work", () => {
  assert.deepEqual(parseRoute("#/quay?sel=waiting/a/b"), {
    ...START,
    view: "pending",
    selection: { kind: "pending", id: "a/b" },
  });
});
