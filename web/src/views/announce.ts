/** Announces changed counts of pending pods and nodes to screen readers. */
import { effect } from "@preact/signals";
import type { App } from "../app";
import { many } from "../model/words";

const REST = 6000;

interface Counts {
  waiting: number;
  nodes: number;
}

/** Begin; what is returned ends it. */
export function announce(app: App): () => void {
  let before: Counts | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const speak = () => {
    timer = undefined;
    const now = count(app);
    if (before) app.said.value = differences(before, now) || app.said.value;
    before = now;
  };
  const stop = effect(() => {
    for (const table of ["waiting", "nodes"] as const) app.store.versions[table].value;
    if (!app.store.loaded.value) return;
    before ??= count(app);
    timer ??= setTimeout(speak, REST);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

function count({ store }: App): Counts {
  const now = { waiting: 0, nodes: store.tables.nodes.size };
  for (const row of store.tables.waiting.values()) now.waiting += row.count;
  return now;
}

export function differences(before: Counts, now: Counts): string {
  const said: string[] = [];
  if (before.waiting !== now.waiting) {
    said.push(`${many(now.waiting, "pod")} pending, before ${before.waiting}`);
  }
  if (before.nodes !== now.nodes) said.push(`${many(now.nodes, "node")}, before ${before.nodes}`);
  return said.length ? `${said.join("; ")}.` : "";
}
