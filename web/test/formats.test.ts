import assert from "node:assert/strict";
import { test } from "node:test";
import { shorten, tail } from "../src/bays/bay";
import { amount } from "../src/model/amounts";
import { age, cpu, duration, memory, percent, plural, position, price } from "../src/model/formats";
import { backOff } from "../src/net/backoff";
import { differences } from "../src/views/announce";
import { groupByResult } from "../src/views/explanation";

test("amounts read as Kubernetes writes them", () => {
  assert.deepEqual([250, 1000, 1500, 96000].map(cpu), ["250m", "1", "1.5", "96"]);
  assert.deepEqual([0, 512 * 2 ** 20, 1.5 * 2 ** 30].map(memory), ["0B", "512Mi", "1.5Gi"]);
  assert.deepEqual(["500m", "2", "1Gi", "1e3", 7, "?", undefined].map(amount), [
    0.5,
    2,
    2 ** 30,
    1000,
    7,
    0,
    0,
  ]);
  assert.equal(percent(1, 0), "–");
  assert.equal(plural(1, "pod"), "1 pod");
  assert.equal(price(0.2, true), "+0.200 an hour");
});

test("times read at a glance", () => {
  assert.deepEqual([42, 200, 7500, 200000].map(duration), [
    "42 s",
    "3 min",
    "2 h 5 min",
    "2 d 7 h",
  ]);
  assert.equal(age("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"), "60 s");
  assert.equal(age("", "2026-01-01T00:01:00Z"), "");
  assert.deepEqual([7, 750, 11100].map(position), ["0:07", "12:30", "3:05:00"]);
});

test("names are cut where they differ least", () => {
  assert.equal(shorten("a-long-name", 6), "a-lon…");
  assert.equal(tail("a-long-name", 6), "…-name");
});

test("each try waits longer, up to a bound", () => {
  const waits = [1, 2, 3, 20].map((attempt) => backOff(attempt, () => 0.5));
  assert.deepEqual(waits, [500, 1000, 2000, 15000]);
});

test("nodes with the same result are one group", () => {
  const refused = (name: string, reason: string) => ({
    name,
    fits: false,
    plugin: "P",
    reasons: [reason],
  });
  const groups = groupByResult([
    refused("a", "x"),
    refused("b", "y"),
    refused("c", "x"),
    { name: "d", fits: true },
  ]);
  assert.deepEqual(
    groups.map((group) => group.nodes.map((node) => node.name)),
    [["a", "c"], ["b"], ["d"]],
  );
});

test("a change is announced with the counts before and after", () => {
  const before = { pending: 3, nodes: 5 };
  assert.equal(differences(before, { pending: 1, nodes: 5 }), "1 pod pending, 3 before.");
  assert.equal(differences(before, before), "");
});
