/** Builders for tests: rows with defaults, and states that hold them. */
import type { Node, Pod } from "../src/model/rows";
import type { State, Table } from "../src/model/store";

const NODE: Node = {
  id: "n",
  group: "workers",
  zone: "a",
  ready: "True",
  cordoned: false,
  taints: [],
  cpu: 4000,
  memory: 16 * 2 ** 30,
  podsMax: 110,
  upcoming: false,
  type: "",
  note: "",
  missing: [],
};

const POD: Pod = {
  id: "default/p",
  node: "",
  cpu: 500,
  memory: 2 ** 30,
  volumes: 0,
  owner: "",
  priority: 0,
  phase: "Running",
  state: "running",
  queue: "",
  upcoming: "",
};

export function node(id: string, more: Partial<Node> = {}): Node {
  return { ...NODE, id, ...more };
}

export function pod(id: string, more: Partial<Pod> = {}): Pod {
  return { ...POD, id: id.includes("/") ? id : `default/${id}`, ...more };
}

export function table(rows: readonly object[]): Table {
  const columns = Object.keys(rows[0] ?? { id: "" });
  return { columns, rows: rows.map((row) => valuesOf(row, columns)) };
}

function valuesOf(row: object, columns: string[]): unknown[] {
  return columns.map((column) => (row as Record<string, unknown>)[column]);
}

export function rowOf(row: object): unknown[] {
  return Object.values(row);
}

export function state(tables: Record<string, readonly object[]>, seq = 1): State {
  return {
    format: 1,
    seq,
    time: "2026-01-01T00:00:00Z",
    source: { kind: "live", name: "test", live: true },
    notes: [],
    tables: Object.fromEntries(Object.entries(tables).map(([name, rows]) => [name, table(rows)])),
  };
}
