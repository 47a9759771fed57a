/**
 * The rows that the server tells of, typed. A table says its columns once; a row is an array in that
 * order. A column that the server does not have keeps the value it has in the blank row here, and one
 * that is not known here is left out, so that either side may be older than the other.
 */

export type Ready = "True" | "False" | "Unknown";
export type PodState = "running" | "starting" | "stuck" | "waiting" | "gated" | "leaving" | "done";
export type Amounts = Readonly<Record<string, string | number>>;

export interface Zone {
  id: string;
}

export interface Group {
  id: string;
  title: string;
  size: number;
  target: number;
  min: number | null;
  max: number | null;
  price: number | null;
  source: string;
  upcoming: number;
}

export interface Node {
  id: string;
  group: string;
  zone: string;
  ready: string;
  cordoned: boolean;
  taints: readonly string[];
  cpu: number;
  memory: number;
  podsMax: number;
  upcoming: boolean;
  type: string;
  note: string;
  missing: readonly string[];
}

export interface Rail {
  id: string;
  node: string;
  driver: string;
  used: number;
  limit: number | null;
  origin: string;
  over: boolean;
}

export interface Pod {
  id: string;
  node: string;
  cpu: number;
  memory: number;
  volumes: number;
  owner: string;
  priority: number;
  phase: string;
  state: string;
  queue: string;
  upcoming: string;
}

export interface Waiting {
  id: string;
  cause: string;
  driver: string;
  title: string;
  pods: readonly string[];
  count: number;
  since: string;
  message: string;
  sample: string;
}

export interface Queue {
  id: string;
  parent: string;
  title: string;
  state: string;
  weight: number | null;
  share: number | null;
  quota: Amounts;
  allocated: Amounts;
  reserved: Amounts;
  requested: Amounts;
  deserved: Amounts;
  guaranteed: Amounts;
  waiting: number;
  next: string;
  why: string;
  problem: string;
}

export interface Step {
  what?: string;
  group?: string;
  nodes?: number | readonly string[];
  pods?: number | readonly string[];
  why?: string;
  cost?: number | string | null;
}

export interface Plan {
  id: string;
  title: string;
  made: string;
  steps: readonly Step[];
  pending: readonly { pods?: number | string | readonly string[]; why?: string }[];
  removals: readonly { node?: string; why?: string }[];
  cost: number | string | null;
  note: string;
}

export interface Event {
  id: string;
  time: string;
  type: string;
  reason: string;
  about: string;
  message: string;
  count: number;
}

export interface Rows {
  zones: Zone;
  groups: Group;
  nodes: Node;
  rails: Rail;
  pods: Pod;
  waiting: Waiting;
  queues: Queue;
  plans: Plan;
  events: Event;
}

export type TableName = keyof Rows;

const NONE: readonly string[] = [];
const NOTHING: Amounts = {};

/** A row of each table before anything is known of it. `null` takes a number, a text or null. */
const BLANK: { readonly [T in TableName]: Rows[T] } = {
  zones: { id: "" },
  groups: {
    ...{ id: "", title: "", size: 0, target: 0, min: null, max: null, price: null },
    ...{ source: "", upcoming: 0 },
  },
  nodes: {
    ...{ id: "", group: "", zone: "", ready: "Unknown", cordoned: false, taints: NONE },
    ...{ cpu: 0, memory: 0, podsMax: 0, upcoming: false, type: "", note: "", missing: NONE },
  },
  rails: { id: "", node: "", driver: "", used: 0, limit: null, origin: "", over: false },
  pods: {
    ...{ id: "", node: "", cpu: 0, memory: 0, volumes: 0, owner: "", priority: 0 },
    ...{ phase: "", state: "running", queue: "", upcoming: "" },
  },
  waiting: {
    ...{ id: "", cause: "other", driver: "", title: "", pods: NONE, count: 0 },
    ...{ since: "", message: "", sample: "" },
  },
  queues: {
    ...{ id: "", parent: "", title: "", state: "", weight: null, share: null },
    ...{ quota: NOTHING, allocated: NOTHING, reserved: NOTHING, requested: NOTHING },
    ...{ deserved: NOTHING, guaranteed: NOTHING, waiting: 0, next: "", why: "", problem: "" },
  },
  plans: {
    ...{ id: "", title: "", made: "", steps: [], pending: [], removals: [], cost: null },
    ...{ note: "" },
  },
  events: { id: "", time: "", type: "Normal", reason: "", about: "", message: "", count: 1 },
};

export const TABLES = Object.keys(BLANK) as TableName[];

export type Reader<T extends TableName> = (row: readonly unknown[]) => Rows[T];

/** What turns a table's arrays into typed rows, made once for the columns it says. */
export function reader<T extends TableName>(table: T, columns: readonly string[]): Reader<T> {
  if (table === "pods") return podReader(columns) as unknown as Reader<T>;
  const blank = BLANK[table] as unknown as Record<string, unknown>;
  const keys = Object.keys(blank);
  const places = keys.map((key) => columns.indexOf(key));
  return (row) => {
    const made: Record<string, unknown> = {};
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] as string;
      made[key] = like(blank[key], row[places[i] as number]);
    }
    return made as unknown as Rows[T];
  };
}

/** The same for pods, spelled out: there are twenty times as many of them as of anything else. */
function podReader(columns: readonly string[]): Reader<"pods"> {
  const at = (name: string) => columns.indexOf(name);
  const [id, node, cpu, memory] = [at("id"), at("node"), at("cpu"), at("memory")];
  const [volumes, owner, priority] = [at("volumes"), at("owner"), at("priority")];
  const [phase, state, queue, upcoming] = [at("phase"), at("state"), at("queue"), at("upcoming")];
  return (row) => ({
    id: text(row[id]),
    node: text(row[node]),
    cpu: count(row[cpu]),
    memory: count(row[memory]),
    volumes: count(row[volumes]),
    owner: text(row[owner]),
    priority: count(row[priority]),
    phase: text(row[phase]),
    state: text(row[state]) || BLANK.pods.state,
    queue: text(row[queue]),
    upcoming: text(row[upcoming]),
  });
}

function text(said: unknown): string {
  return typeof said === "string" ? said : "";
}

function count(said: unknown): number {
  return typeof said === "number" ? said : 0;
}

/** The value said, if it is of the blank one's kind; else the blank one. */
function like(blank: unknown, said: unknown): unknown {
  if (said === undefined || said === null) return blank;
  if (blank === null) return typeof said === "object" ? null : said;
  if (Array.isArray(blank)) return Array.isArray(said) ? said : blank;
  return typeof said === typeof blank ? said : blank;
}
