/**
 * All that the page knows of the cluster: a Map of typed rows for each table. A whole state replaces
 * everything; a change sets and drops single rows. What the views draw from is kept up with each row:
 * pods by bay (`berths`), rails by node, and a count of versions by table that says what to draw anew.
 */
import { batch, type Signal, signal } from "@preact/signals";
import { Berths } from "./berths";
import {
  type Node,
  type Pod,
  type Rail,
  type Reader,
  type Rows,
  reader,
  TABLES,
  type TableName,
} from "./rows";

export interface Source {
  kind: string;
  name: string;
  live: boolean;
  from?: string;
  to?: string;
}

/** Whether there is a time to go back and forth in. */
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

const NOWHERE: Source = { kind: "", name: "", live: true };

export class Store {
  readonly tables = Object.fromEntries(
    TABLES.map((name) => [name, new Map()]),
  ) as unknown as Tables;
  readonly berths = new Berths();
  /** Counts up with every change of a table; reading one in a view makes it draw anew. */
  readonly versions = Object.fromEntries(TABLES.map((name) => [name, signal(0)])) as Record<
    TableName,
    Signal<number>
  >;
  /** Counts up when bays come, go, or change their size or place. */
  readonly shape = signal(0);
  readonly loaded = signal(false);
  readonly time = signal("");
  readonly source = signal<Source>(NOWHERE);
  readonly notes = signal<readonly string[]>([]);
  seq = 0;
  private readers: Readers = {};
  private railsByNode = new Map<string, Map<string, Rail>>();

  /** Forget everything, and take what the server says. */
  replace(state: State): void {
    if (state.format !== FORMAT) {
      throw new Error(
        `The server speaks format ${state.format}, this page ${FORMAT}: load it anew.`,
      );
    }
    batch(() => {
      this.berths.clear();
      this.railsByNode.clear();
      this.readers = {};
      for (const name of TABLES) this.fill(name, state.tables[name]);
      this.source.value = state.source;
      this.notes.value = state.notes ?? [];
      this.shape.value += 1;
      this.moveTo(state);
      this.loaded.value = true;
    });
  }

  /** Take one change; one that is already known is passed over. */
  apply(change: Change): void {
    if (change.seq <= this.seq) return;
    batch(() => {
      for (const name of TABLES) this.drop(name, change.drop?.[name]);
      for (const name of TABLES) this.set(name, change.set?.[name]);
      if (change.notes) this.notes.value = change.notes;
      this.moveTo(change);
    });
  }

  /** The rails of a node, by driver. */
  rails(node: string): Rail[] {
    return [...(this.railsByNode.get(node)?.values() ?? [])];
  }

  private moveTo(told: { seq: number; time: string }): void {
    this.seq = told.seq;
    this.time.value = told.time;
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
      this.link(name, row);
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
    for (const id of ids) this.take(name, id);
    this.versions[name].value += 1;
  }

  private put<T extends TableName>(name: T, row: Rows[T]): void {
    const table = this.tables[name] as Map<string, Rows[T]>;
    const before = table.get(row.id);
    if (before !== undefined) this.unlink(name, before);
    if (name === "nodes" ? moved(before as Node | undefined, row as Node) : isNew(name, before)) {
      this.shape.value += 1;
    }
    table.set(row.id, row);
    this.link(name, row);
  }

  private take<T extends TableName>(name: T, id: string): void {
    const before = this.tables[name].get(id) as Rows[T] | undefined;
    if (before === undefined) return;
    this.tables[name].delete(id);
    this.unlink(name, before);
    if (name === "nodes" || name === "groups" || name === "zones") this.shape.value += 1;
  }

  private link<T extends TableName>(name: T, row: Rows[T]): void {
    if (name === "pods") this.berths.add(row as Pod);
    else if (name === "rails") this.hang(row as Rail);
  }

  private unlink<T extends TableName>(name: T, row: Rows[T]): void {
    if (name === "pods") this.berths.remove(row as Pod);
    else if (name === "rails") this.railsByNode.get((row as Rail).node)?.delete(row.id);
  }

  private hang(rail: Rail): void {
    let rails = this.railsByNode.get(rail.node);
    if (rails === undefined) {
      rails = new Map();
      this.railsByNode.set(rail.node, rails);
    }
    rails.set(rail.id, rail);
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
