/**
 * The rows that the server sends, typed. A table has its columns once; a row is an array in that order. A
 * column that the server does not send has the default of `BLANK`, and an unknown one is ignored, so that
 * page and server may have different versions.
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

/** The attach limit of a CSI driver on a node, and the slots in use: a row of the table `rails`. */
export interface AttachLimit {
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

/** Equivalent pending pods: a row of the table `waiting`. */
export interface PendingPods {
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
  rails: AttachLimit;
  pods: Pod;
  waiting: PendingPods;
  queues: Queue;
  plans: Plan;
  events: Event;
}

export type TableName = keyof Rows;

const NONE: readonly string[] = [];
const NOTHING: Amounts = {};

/** The defaults of each table. A column whose default is null has numbers or texts. */
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

/** Return a function that turns the arrays of a table with these columns into typed rows. */
export function reader<T extends TableName>(table: T, columns: readonly string[]): Reader<T> {
  if (table === "pods") return podReader(columns) as unknown as Reader<T>;
  const blank = BLANK[table] as unknown as Record<string, unknown>;
  const keys = Object.keys(blank);
  const positions = keys.map((key) => columns.indexOf(key));
  return (row) => {
    const made: Record<string, unknown> = {};
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] as string;
      made[key] = valueOr(blank[key], row[positions[i] as number]);
    }
    return made as unknown as Rows[T];
  };
}

/** The same for pods, without a loop: there are many more pods than other rows. */
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

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function count(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

/** Return a value if it has the type of the default, otherwise the default. */
function valueOr(blank: unknown, value: unknown): unknown {
  if (value === undefined || value === null) return blank;
  if (blank === null) return typeof value === "object" ? null : value;
  if (Array.isArray(blank)) return Array.isArray(value) ? value : blank;
  return typeof value === typeof blank ? value : blank;
}
