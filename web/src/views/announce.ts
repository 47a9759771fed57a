/** Announces changed counts of pending pods and nodes to screen readers. */
import { effect } from "@preact/signals";
import type { App } from "../app";
import { plural } from "../model/formats";

/** Milliseconds between two announcements. */
const INTERVAL = 6000;

interface Counts {
  pending: number;
  nodes: number;
}

/** Start announcing; return a function that stops it. */
export function announce(app: App): () => void {
  let before: Counts | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const announceChanges = () => {
    timer = undefined;
    const now = count(app);
    if (before) app.announcement.value = differences(before, now) || app.announcement.value;
    before = now;
  };
  const stop = effect(() => {
    for (const table of ["waiting", "nodes"] as const) app.store.versions[table].value;
    if (!app.store.loaded.value) return;
    before ??= count(app);
    timer ??= setTimeout(announceChanges, INTERVAL);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

function count({ store }: App): Counts {
  const now = { pending: 0, nodes: store.tables.nodes.size };
  for (const row of store.tables.waiting.values()) now.pending += row.count;
  return now;
}

export function differences(before: Counts, now: Counts): string {
  const changes: string[] = [];
  if (before.pending !== now.pending) {
    changes.push(`${plural(now.pending, "pod")} pending, ${before.pending} before`);
  }
  if (before.nodes !== now.nodes)
    changes.push(`${plural(now.nodes, "node")}, ${before.nodes} before`);
  return changes.length ? `${changes.join("; ")}.` : "";
}
