/**
 * The pods of each node (or those assigned to an upcoming one) with the sums of their requests, updated
 * with every row that is set or dropped, so that drawing does not count pods.
 */
import type { Pod } from "./rows";

export interface NodeUsage {
  pods: Map<string, Pod>;
  cpu: number;
  memory: number;
  /** How many pods are in each state. */
  states: Map<string, number>;
  /** Increases with every change of these pods; caches compare it. */
  version: number;
}

const EMPTY: NodeUsage = { pods: new Map(), cpu: 0, memory: 0, states: new Map(), version: 0 };

export class UsageByNode {
  private readonly byNode = new Map<string, NodeUsage>();

  of(node: string): NodeUsage {
    return this.byNode.get(node) ?? EMPTY;
  }

  clear(): void {
    this.byNode.clear();
  }

  add(pod: Pod): void {
    const node = nodeOf(pod);
    if (node === "") return;
    let usage = this.byNode.get(node);
    if (usage === undefined) {
      usage = { pods: new Map(), cpu: 0, memory: 0, states: new Map(), version: 0 };
      this.byNode.set(node, usage);
    }
    usage.pods.set(pod.id, pod);
    count(usage, pod, 1);
  }

  remove(pod: Pod): void {
    const usage = this.byNode.get(nodeOf(pod));
    if (!usage?.pods.delete(pod.id)) return;
    count(usage, pod, -1);
  }
}

/** Return the node in whose bay the pod is drawn: its own, or the upcoming one that it is assigned to. */
export function nodeOf(pod: Pod): string {
  return pod.node || pod.upcoming;
}

/** Return whether a pod uses resources: one that has ended does not. */
function usesResources(pod: Pod): boolean {
  return pod.state !== "done";
}

function count(usage: NodeUsage, pod: Pod, sign: 1 | -1): void {
  if (usesResources(pod)) {
    usage.cpu += sign * pod.cpu;
    usage.memory += sign * pod.memory;
  }
  const before = usage.states.get(pod.state) ?? 0;
  usage.states.set(pod.state, before + sign);
  usage.version += 1;
}
