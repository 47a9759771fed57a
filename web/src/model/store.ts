/**
 * The data of the cluster: a Map of typed rows for each table. A state replaces everything; a change sets
 * and drops single rows. Indexes are updated with each row: usage and attach limits by node, and a version
 * of each table, so that views know when to render again.
 */
import { batch, type Signal, signal } from "@preact/signals";
import {
  type AttachLimit,
  type Node,
  type Pod,
  type Reader,
  type Rows,
  reader,
  TABLES,
  type TableName,
} from "./rows";
import { UsageByNode } from "./usage";

export interface Source {
  kind: string;
  name: string;
  live: boolean;
  from?: string;
  to?: string;
}

/** Return whether the source is a recording. */
export function isRecording(source: Source): boolean {
  return !source.live && Boolean(source.to);
}

export interface Table {
  columns: string[];
  rows: unknown[][];
}

export interface State {
  format: number;
  seq: number;
  time: string;
  source: Source;
  notes: string[];
  tables: Partial<Record<TableName, Table>>;
}

export interface Change {
  seq: number;
  time: string;
  set?: Partial<Record<TableName, unknown[][]>>;
  drop?: Partial<Record<TableName, string[]>>;
  notes?: string[];
}

export const FORMAT = 1;

type Tables = { [T in TableName]: Map<string, Rows[T]> };
type Readers = { [T in TableName]?: Reader<T> };

const NO_SOURCE: Source = { kind: "", name: "", live: true };

export class Store {
  readonly tables = Object.fromEntries(
    TABLES.map((name) => [name, new Map()]),
  ) as unknown as Tables;
  readonly usage = new UsageByNode();
  /** Increases with every change of a table; a view that reads it renders again. */
  readonly versions = Object.fromEntries(TABLES.map((name) => [name, signal(0)])) as Record<
    TableName,
    Signal<number>
  >;
  /** Increases when bays are added, removed, moved or resized. */
  readonly shape = signal(0);
  readonly loaded = signal(false);
  readonly time = signal("");
  readonly source = signal<Source>(NO_SOURCE);
  readonly notes = signal<readonly string[]>([]);
  seq = 0;
  private readers: Readers = {};
  private limitsByNode = new Map<string, Map<string, AttachLimit>>();

  /** Replace everything by a state. */
  replace(state: State): void {
    if (state.format !== FORMAT) {
      throw new Error(
        `The server uses data format ${state.format}, this page ${FORMAT}: reload the page.`,
      );
    }
    batch(() => {
      this.usage.clear();
      this.limitsByNode.clear();
      this.readers = {};
      for (const name of TABLES) this.fill(name, state.tables[name]);
      this.source.value = state.source;
      this.notes.value = state.notes ?? [];
      this.shape.value += 1;
      this.setTime(state);
      this.loaded.value = true;
    });
  }

  /** Apply a change; one that was applied before is ignored. */
  apply(change: Change): void {
    if (change.seq <= this.seq) return;
    batch(() => {
      for (const name of TABLES) this.drop(name, change.drop?.[name]);
      for (const name of TABLES) this.set(name, change.set?.[name]);
      if (change.notes) this.notes.value = change.notes;
      this.setTime(change);
    });
  }

  /** Return the attach limits of a node. */
  attachLimits(node: string): AttachLimit[] {
    return [...(this.limitsByNode.get(node)?.values() ?? [])];
  }

  private setTime(to: { seq: number; time: string }): void {
    this.seq = to.seq;
    this.time.value = to.time;
  }

  private fill<T extends TableName>(name: T, table: Table | undefined): void {
    this.tables[name].clear();
    this.versions[name].value += 1;
    if (table === undefined) return;
    const read = reader(name, table.columns);
    (this.readers as Record<string, unknown>)[name] = read;
    const rows = this.tables[name] as Map<string, Rows[T]>;
    for (const values of table.rows) {
      const row = read(values);
      rows.set(row.id, row);
      this.index(name, row);
    }
  }

  private set<T extends TableName>(name: T, rows: unknown[][] | undefined): void {
    const read = this.readers[name] as Reader<T> | undefined;
    if (!rows?.length || read === undefined) return;
    for (const row of rows) this.put(name, read(row));
    this.versions[name].value += 1;
  }

  private drop<T extends TableName>(name: T, ids: string[] | undefined): void {
    if (!ids?.length) return;
    for (const id of ids) this.remove(name, id);
    this.versions[name].value += 1;
  }

  private put<T extends TableName>(name: T, row: Rows[T]): void {
    const table = this.tables[name] as Map<string, Rows[T]>;
    const before = table.get(row.id);
    if (before !== undefined) this.unindex(name, before);
    if (name === "nodes" ? moved(before as Node | undefined, row as Node) : isNew(name, before)) {
      this.shape.value += 1;
    }
    table.set(row.id, row);
    this.index(name, row);
  }

  private remove<T extends TableName>(name: T, id: string): void {
    const before = this.tables[name].get(id) as Rows[T] | undefined;
    if (before === undefined) return;
    this.tables[name].delete(id);
    this.unindex(name, before);
    if (name === "nodes" || name === "groups" || name === "zones") this.shape.value += 1;
  }

  private index<T extends TableName>(name: T, row: Rows[T]): void {
    if (name === "pods") this.usage.add(row as Pod);
    else if (name === "rails") this.addLimit(row as AttachLimit);
  }

  private unindex<T extends TableName>(name: T, row: Rows[T]): void {
    if (name === "pods") this.usage.remove(row as Pod);
    else if (name === "rails") this.limitsByNode.get((row as AttachLimit).node)?.delete(row.id);
  }

  private addLimit(limit: AttachLimit): void {
    let limits = this.limitsByNode.get(limit.node);
    if (limits === undefined) {
      limits = new Map();
      this.limitsByNode.set(limit.node, limits);
    }
    limits.set(limit.id, limit);
  }
}

function isNew(name: TableName, before: unknown): boolean {
  return before === undefined && (name === "groups" || name === "zones");
}

function moved(before: Node | undefined, now: Node): boolean {
  return (
    before === undefined ||
    before.group !== now.group ||
    before.zone !== now.zone ||
    before.cpu !== now.cpu ||
    before.memory !== now.memory ||
    before.upcoming !== now.upcoming
  );
}
