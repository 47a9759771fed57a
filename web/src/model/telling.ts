/** One-line descriptions of nodes, pods and attach slots: tooltips, lists and screen readers. */
import type { Node, Pod, Rail } from "./rows";
import type { Store } from "./store";
import { cpu, many, memory, percent } from "./words";

/** How a node is, in words: the troubles first. */
export function condition(node: Node): string {
  if (node.upcoming) return "upcoming";
  const ready = { True: "ready", False: "not ready" }[node.ready] ?? "unknown";
  return node.cordoned ? `${ready}, cordoned` : ready;
}

export function tellNode(store: Store, node: Node): string {
  const berth = store.berths.of(node.id);
  const stuck = berth.states.get("stuck") ?? 0;
  return [
    `${node.id}: ${condition(node)}`,
    `${many(berth.pods.size, "pod")}${node.upcoming ? " for it" : ""}`,
    `CPU ${percent(berth.cpu, node.cpu)} of ${cpu(node.cpu)}`,
    `memory ${percent(berth.memory, node.memory)} of ${memory(node.memory)}`,
    ...store.rails(node.id).map(tellRail),
    ...node.missing.map((driver) => `driver ${driver} is missing`),
    ...(stuck ? [`${many(stuck, "pod")} stuck`] : []),
  ].join(", ");
}

export function tellRail(rail: Rail): string {
  if (rail.limit === null) return `${rail.driver}: ${rail.used} attached, no known limit`;
  const over = rail.over ? ", over its limit" : "";
  return `${rail.driver}: ${rail.used} of ${rail.limit} attach slots in use${over}`;
}

export function tellPod(pod: Pod): string {
  const asks = `requests ${cpu(pod.cpu)} CPU, ${memory(pod.memory)}`;
  const volumes = pod.volumes ? `, ${many(pod.volumes, "volume")}` : "";
  return `${pod.id}: ${pod.state}, ${asks}${volumes}`;
}
