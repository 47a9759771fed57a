/** One-line descriptions of nodes, pods and attach slots: tooltips, lists and screen readers. */

import { cpu, memory, percent, plural, stateText } from "./formats";
import type { AttachLimit, Node, Pod } from "./rows";
import type { Store } from "./store";

/** Return the status of a node, and whether it is cordoned. */
export function nodeStatus(node: Node): string {
  if (node.upcoming) return "upcoming";
  const ready = { True: "ready", False: "not ready" }[node.ready] ?? "unknown";
  return node.cordoned ? `${ready}, cordoned` : ready;
}

/** Describe a node: status, usage, attach slots and problems. */
export function describeNode(store: Store, node: Node): string {
  const usage = store.usage.of(node.id);
  const stuck = usage.states.get("stuck") ?? 0;
  return [
    `${node.id}: ${nodeStatus(node)}`,
    `${plural(usage.pods.size, "pod")}${node.upcoming ? " assigned" : ""}`,
    `CPU ${percent(usage.cpu, node.cpu)} of ${cpu(node.cpu)}`,
    `memory ${percent(usage.memory, node.memory)} of ${memory(node.memory)}`,
    ...store.attachLimits(node.id).map(describeAttachLimit),
    ...node.missing.map((driver) => `CSI driver ${driver} is missing`),
    ...(stuck ? [`${plural(stuck, "pod")} stuck`] : []),
  ].join(", ");
}

export function describeAttachLimit(row: AttachLimit): string {
  if (row.limit === null) return `${row.driver}: ${row.used} attached, limit unknown`;
  const over = row.over ? ", over its limit" : "";
  return `${row.driver}: ${row.used} of ${row.limit} attach slots in use${over}`;
}

export function describePod(pod: Pod): string {
  const requests = `requests ${cpu(pod.cpu)} CPU, ${memory(pod.memory)}`;
  const volumes = pod.volumes ? `, ${plural(pod.volumes, "volume")}` : "";
  return `${pod.id}: ${stateText(pod.state)}, ${requests}${volumes}`;
}
