/** Requests to the server, all GET. Paths are relative, so that a proxy may add a prefix. */
import type { Change, State } from "../model/store";

/** An error response of the server. */
export class ResponseError extends Error {
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

/** Fetch the explanation of a pod; of a recording, in the state after a change. */
export function getExplanation(pod: string, after: number | null, signal: AbortSignal) {
  const state = after === null ? "" : `&after=${after}`;
  return get<Explanation>(`api/explain?pod=${encodeURIComponent(pod)}${state}`, signal);
}

/** Check that the server can be reached and accepts the token. */
export async function ping(): Promise<void> {
  const response = await fetch("./", { method: "HEAD", cache: "no-store" });
  if (response.status === 401 || response.status === 403) {
    throw new ResponseError(
      response.status,
      "The server requires a token: open the address that bayplan ui printed.",
    );
  }
  if (!response.ok)
    throw new ResponseError(
      response.status,
      `The server responded with status ${response.status}.`,
    );
}

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal: signal ?? null, cache: "no-store" });
  if (response.ok) return (await response.json()) as T;
  throw new ResponseError(response.status, await errorOf(response));
}

async function errorOf(response: Response): Promise<string> {
  try {
    const body = (await response.json()) as { error?: unknown };
    if (typeof body.error === "string") return body.error;
  } catch {
    // Not JSON: use the status.
  }
  return `The server responded with status ${response.status} ${response.statusText}`.trim();
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

export interface NodeResult {
  name: string;
  fits: boolean;
  plugin?: string;
  reasons?: string[];
  details?: string[];
  scores?: Record<string, number>;
}

/** The pod group of a pod that its queue has not admitted. */
export interface QueueReason {
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

/** The part of the output of `bayplan explain -o json` that the page shows. */
export interface Explanation {
  pod: string;
  pods?: string[];
  standing?: string;
  fits: boolean;
  unjudged?: string;
  judged?: { scheduler?: string; as?: string; notes?: string[] };
  queue?: QueueReason;
  node?: string | null;
  message?: string;
  why?: string;
  refusedBefore?: { plugin: string; reasons: string[] } | null;
  nodes?: NodeResult[];
  preemption?: Preemption | null;
  fixes?: Fix[];
  sought?: {
    nodes: number;
    nearest: { node: string; reasons: string[]; details: string[] } | null;
  };
}
