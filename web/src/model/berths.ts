/**
 * What lies in each bay: the pods of a node (or those meant for an upcoming one) with their sums, kept
 * up with every row that is set or dropped, so that drawing never counts pods.
 */
import type { Pod } from "./rows";

export interface Berth {
  pods: Map<string, Pod>;
  cpu: number;
  memory: number;
  /** How many pods are in each state. */
  states: Map<string, number>;
  /** Changes with every change of the pods here; what is cached of a bay is kept by it. */
  version: number;
}

const EMPTY: Berth = { pods: new Map(), cpu: 0, memory: 0, states: new Map(), version: 0 };

export class Berths {
  private readonly byNode = new Map<string, Berth>();

  of(node: string): Berth {
    return this.byNode.get(node) ?? EMPTY;
  }

  clear(): void {
    this.byNode.clear();
  }

  add(pod: Pod): void {
    const node = place(pod);
    if (node === "") return;
    let berth = this.byNode.get(node);
    if (berth === undefined) {
      berth = { pods: new Map(), cpu: 0, memory: 0, states: new Map(), version: 0 };
      this.byNode.set(node, berth);
    }
    berth.pods.set(pod.id, pod);
    count(berth, pod, 1);
  }

  remove(pod: Pod): void {
    const berth = this.byNode.get(place(pod));
    if (!berth?.pods.delete(pod.id)) return;
    count(berth, pod, -1);
  }
}

/** The node whose bay the pod is drawn in: where it is, or the upcoming one it is meant for. */
export function place(pod: Pod): string {
  return pod.node || pod.upcoming;
}

/** Pods that are done hold nothing any more. */
export function holds(pod: Pod): boolean {
  return pod.state !== "done";
}

function count(berth: Berth, pod: Pod, sign: 1 | -1): void {
  if (holds(pod)) {
    berth.cpu += sign * pod.cpu;
    berth.memory += sign * pod.memory;
  }
  const before = berth.states.get(pod.state) ?? 0;
  berth.states.set(pod.state, before + sign);
  berth.version += 1;
}
