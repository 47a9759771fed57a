/** What the page asks the server, all of it by GET. Paths are relative, so that a proxy may prefix them. */
import type { Change, State } from "../model/store";

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export interface Mark {
  at: number;
  kind: string;
  text: string;
}

export interface Timeline {
  seconds: number;
  marks: Mark[];
  series: Record<string, [number, number][]>;
}

export interface Changes {
  changes: Change[];
  end: boolean;
}

export function getState(at: number | null, signal?: AbortSignal): Promise<State> {
  return get(`api/state${at === null ? "" : `?at=${at}`}`, signal);
}

export function getTimeline(signal?: AbortSignal): Promise<Timeline> {
  return get("api/timeline", signal);
}

export function getChanges(after: number, most: number, signal?: AbortSignal): Promise<Changes> {
  return get(`api/changes?after=${after}&most=${most}`, signal);
}

/** Why a pod is where it is; of a recording, in the state after that change. */
export function getExplanation(pod: string, after: number | null, signal: AbortSignal) {
  const state = after === null ? "" : `&after=${after}`;
  return get<Explanation>(`api/explain?pod=${encodeURIComponent(pod)}${state}`, signal);
}

/** Whether the server is there and lets us in. */
export async function ping(): Promise<void> {
  const answer = await fetch("./", { method: "HEAD", cache: "no-store" });
  if (answer.status === 401 || answer.status === 403) {
    throw new Refused(
      answer.status,
      "The server wants its token: open the address that it printed.",
    );
  }
  if (!answer.ok) throw new Refused(answer.status, `The server answers ${answer.status}.`);
}

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await fetch(path, { signal: signal ?? null, cache: "no-store" });
  if (answer.ok) return (await answer.json()) as T;
  throw new Refused(answer.status, await errorOf(answer));
}

async function errorOf(answer: Response): Promise<string> {
  try {
    const said = (await answer.json()) as { error?: unknown };
    if (typeof said.error === "string") return said.error;
  } catch {
    // Not JSON: the status has to do.
  }
  return `${answer.status} ${answer.statusText}`.trim();
}

export interface FixStep {
  text: string;
  command?: string | null;
  risks?: string[];
}

export interface Fix {
  summary: string;
  node?: string | null;
  steps: FixStep[];
}

export interface NodeAnswer {
  name: string;
  fits: boolean;
  plugin?: string;
  reasons?: string[];
  details?: string[];
  scores?: Record<string, number>;
}

/** A group of pods that its queue holds back. */
export interface HeldBack {
  group?: string;
  queue?: string;
  position?: number | null;
  asksFor?: Record<string, string>;
  waitsFor?: string;
}

export interface Preemption {
  node: string | null;
  victims: string[];
}

/** What `bayplan explain -o json` says of a pod, as far as the page shows it. */
export interface Explanation {
  pod: string;
  pods?: string[];
  standing?: string;
  fits: boolean;
  unjudged?: string;
  judged?: { scheduler?: string; as?: string; notes?: string[] };
  queue?: HeldBack;
  node?: string | null;
  message?: string;
  why?: string;
  refusedBefore?: { plugin: string; reasons: string[] } | null;
  nodes?: NodeAnswer[];
  preemption?: Preemption | null;
  fixes?: Fix[];
  sought?: {
    nodes: number;
    nearest: { node: string; reasons: string[]; details: string[] } | null;
  };
}
