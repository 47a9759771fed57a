/**
 * The state of the page in its address: `#/bays?sel=node/worker-1&by=memory&at=120`. Defaults are
 * omitted; unknown values are ignored.
 */

export const VIEWS = ["bays", "nodes", "pending", "queues", "plan", "events"] as const;
export type View = (typeof VIEWS)[number];
/** Views by the names that older links have. */
const RENAMED: Record<string, View> = { quay: "pending" };
export const MEASURES = ["cpu", "memory"] as const;
export type Measure = (typeof MEASURES)[number];
export const COLOURS = ["state", "namespace", "owner", "queue"] as const;
export type Colour = (typeof COLOURS)[number];

export type Kind = "node" | "pod" | "group" | "queue" | "pending";
const KINDS: readonly Kind[] = ["node", "pod", "group", "queue", "pending"];
/** Kinds of selections by the names that older links have. */
const RENAMED_KINDS: Record<string, Kind> = { waiting: "pending" };

export interface Selection {
  kind: Kind;
  id: string;
}

export interface Route {
  view: View;
  selection: Selection | null;
  by: Measure;
  colour: Colour;
  /** The search text: bays that do not match are dimmed, lists are filtered. */
  query: string;
  /** Show only events of this type. */
  type: string;
  /** Seconds from the start of a recording; null for its end, or for a live cluster. */
  at: number | null;
  /** The camera: the centre in bays, and the width of a bay in pixels; null to fit everything. */
  look: readonly [number, number, number] | null;
}

export const START: Route = {
  view: "bays",
  selection: null,
  by: "cpu",
  colour: "state",
  query: "",
  type: "",
  at: null,
  look: null,
};

export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const params = new URLSearchParams(search);
  return {
    view: oneOf(VIEWS, RENAMED[path] ?? path) ?? START.view,
    selection: selection(params.get("sel")),
    by: oneOf(MEASURES, params.get("by")) ?? START.by,
    colour: oneOf(COLOURS, params.get("colour")) ?? START.colour,
    query: params.get("q") ?? "",
    type: params.get("type") ?? "",
    at: seconds(params.get("at")),
    look: look(params.get("look")),
  };
}

export function formatRoute(route: Route): string {
  const params = new URLSearchParams();
  if (route.selection) params.set("sel", `${route.selection.kind}/${route.selection.id}`);
  if (route.by !== START.by) params.set("by", route.by);
  if (route.colour !== START.colour) params.set("colour", route.colour);
  if (route.query) params.set("q", route.query);
  if (route.type) params.set("type", route.type);
  if (route.at !== null) params.set("at", String(route.at));
  if (route.look) params.set("look", route.look.map((n) => n.toFixed(2)).join(","));
  const search = params.toString().replaceAll("%2F", "/").replaceAll("%2C", ",");
  return `#/${route.view}${search ? `?${search}` : ""}`;
}

function selection(text: string | null): Selection | null {
  const slash = text?.indexOf("/") ?? -1;
  if (text === null || slash < 0) return null;
  const name = text.slice(0, slash);
  const kind = oneOf(KINDS, RENAMED_KINDS[name] ?? name);
  return kind && { kind, id: text.slice(slash + 1) };
}

function oneOf<T extends string>(choices: readonly T[], text: string | null): T | null {
  return choices.find((choice) => choice === text) ?? null;
}

function seconds(text: string | null): number | null {
  const value = text === null || text === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : null;
}

function look(text: string | null): Route["look"] {
  const [x, y, size] = (text ?? "").split(",").map(Number);
  if (![x, y, size].every(Number.isFinite) || (size as number) <= 0) return null;
  return [x as number, y as number, size as number];
}
