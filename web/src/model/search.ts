/**
 * The search for nodes, groups, queues and pods. Every word must be part of a name or of another field;
 * names that begin with the words come first. A word with a colon searches one field: `zone:a`,
 * `state:stuck`, `taint:gpu`, `driver:ebs`.
 */
import { stateText } from "./formats";
import type { Node, Pod } from "./rows";
import type { Store } from "./store";

export interface Found {
  kind: "node" | "pod" | "group" | "queue";
  id: string;
  hint: string;
}

export interface Query {
  words: readonly string[];
  fields: readonly (readonly [string, string])[];
}

export function parseQuery(text: string): Query {
  const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
  const isField = (part: string) => /^[a-z]+:./.test(part);
  return {
    words: parts.filter((part) => !isField(part)),
    fields: parts.filter(isField).map((part) => {
      const colon = part.indexOf(":");
      return [part.slice(0, colon), part.slice(colon + 1)] as const;
    }),
  };
}

export function isEmpty(query: Query): boolean {
  return query.words.length === 0 && query.fields.length === 0;
}

/** Return the best results: by where the words are in the name, then by kind. */
export function find(store: Store, text: string, most = 12): Found[] {
  const query = parseQuery(text);
  if (isEmpty(query)) return [];
  const found: [number, Found][] = [];
  const offer = (kind: Found["kind"], id: string, hint: string, matches: boolean) => {
    if (matches) found.push([rank(id, query), { kind, id, hint }]);
  };
  for (const g of store.tables.groups.values())
    offer("group", g.id, "group", plain(query, `${g.id} ${g.title}`));
  for (const q of store.tables.queues.values()) offer("queue", q.id, "queue", plain(query, q.id));
  for (const n of store.tables.nodes.values())
    offer("node", n.id, n.type || "node", nodeMatches(n, query));
  for (const p of store.tables.pods.values())
    offer("pod", p.id, p.node || stateText(p.state), podMatches(p, query));
  return best(found, most);
}

/** Return the nodes that match, or have a pod that matches; null for an empty search. */
export function matchingNodes(store: Store, text: string): Set<string> | null {
  const query = parseQuery(text);
  if (isEmpty(query)) return null;
  const nodes = new Set<string>();
  for (const node of store.tables.nodes.values()) {
    if (nodeMatches(node, query)) nodes.add(node.id);
  }
  for (const pod of store.tables.pods.values()) {
    const node = pod.node || pod.upcoming;
    if (node && !nodes.has(node) && podMatches(pod, query)) nodes.add(node);
  }
  return nodes;
}

export function nodeMatches(node: Node, query: Query): boolean {
  return (
    query.words.every((word) => within(word, node.id, node.group, node.zone, node.type)) &&
    query.fields.every(([field, value]) => nodeField(node, field, value))
  );
}

export function podMatches(pod: Pod, query: Query): boolean {
  return (
    query.words.every((word) => within(word, pod.id, pod.owner)) &&
    query.fields.every(([field, value]) => podField(pod, field, value))
  );
}

function nodeField(node: Node, field: string, value: string): boolean {
  if (field === "taint") return node.taints.some((taint) => within(value, taint));
  if (field === "driver") return node.missing.some((driver) => within(value, driver));
  if (field === "zone") return within(value, node.zone);
  if (field === "group") return within(value, node.group);
  if (field === "type") return within(value, node.type);
  if (field === "ready") return within(value, node.ready);
  return field === "node" && within(value, node.id);
}

function podField(pod: Pod, field: string, value: string): boolean {
  if (field === "state") return within(value, pod.state, stateText(pod.state));
  if (field === "queue") return within(value, pod.queue);
  if (field === "owner") return within(value, pod.owner);
  if (field === "ns") return pod.id.toLowerCase().startsWith(`${value}/`);
  return field === "pod" && within(value, pod.id);
}

function plain(query: Query, text: string): boolean {
  return query.fields.length === 0 && query.words.every((word) => within(word, text));
}

function within(word: string, ...texts: string[]): boolean {
  return texts.some((text) => text.toLowerCase().includes(word));
}

/** Return the rank of a name, best first: equal, beginning, part of it, only another field. */
function rank(id: string, query: Query): number {
  const name = id.toLowerCase();
  const first = query.words[0] ?? "";
  if (name === first || name.endsWith(`/${first}`)) return 0;
  const at = name.indexOf(first);
  return at < 0 ? 3 : at === 0 || name[at - 1] === "/" ? 1 : 2;
}

function best(found: [number, Found][], most: number): Found[] {
  const kinds = ["group", "queue", "node", "pod"];
  const order = ([rank, one]: [number, Found]) => rank * 4 + kinds.indexOf(one.kind);
  return found
    .sort((a, b) => order(a) - order(b) || natural(a[1].id, b[1].id))
    .slice(0, most)
    .map(([, one]) => one);
}

const collator = new Intl.Collator("en", { numeric: true });

/** Compare names with their numbers: node-2 before node-10. */
export function natural(a: string, b: string): number {
  return collator.compare(a, b);
}
