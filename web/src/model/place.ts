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

export type Kind = "node" | "pod" | "group" | "queue" | "waiting";
const KINDS: readonly string[] = ["node", "pod", "group", "queue", "waiting"];

export interface Selection {
  kind: Kind;
  id: string;
}

export interface Place {
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
  /** The middle of the drawing in bays, and how wide a bay is in pixels; null to fit. */
  look: readonly [number, number, number] | null;
}

export const START: Place = {
  view: "bays",
  selection: null,
  by: "cpu",
  colour: "state",
  query: "",
  type: "",
  at: null,
  look: null,
};

export function parse(hash: string): Place {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const asked = new URLSearchParams(search);
  return {
    view: oneOf(VIEWS, RENAMED[path] ?? path) ?? START.view,
    selection: selection(asked.get("sel")),
    by: oneOf(MEASURES, asked.get("by")) ?? START.by,
    colour: oneOf(COLOURS, asked.get("colour")) ?? START.colour,
    query: asked.get("q") ?? "",
    type: asked.get("type") ?? "",
    at: seconds(asked.get("at")),
    look: look(asked.get("look")),
  };
}

export function format(place: Place): string {
  const said = new URLSearchParams();
  if (place.selection) said.set("sel", `${place.selection.kind}/${place.selection.id}`);
  if (place.by !== START.by) said.set("by", place.by);
  if (place.colour !== START.colour) said.set("colour", place.colour);
  if (place.query) said.set("q", place.query);
  if (place.type) said.set("type", place.type);
  if (place.at !== null) said.set("at", String(place.at));
  if (place.look) said.set("look", place.look.map((n) => n.toFixed(2)).join(","));
  const search = said.toString().replaceAll("%2F", "/").replaceAll("%2C", ",");
  return `#/${place.view}${search ? `?${search}` : ""}`;
}

function selection(text: string | null): Selection | null {
  const slash = text?.indexOf("/") ?? -1;
  if (text === null || slash < 0 || !KINDS.includes(text.slice(0, slash))) return null;
  return { kind: text.slice(0, slash) as Kind, id: text.slice(slash + 1) };
}

function oneOf<T extends string>(choices: readonly T[], text: string | null): T | null {
  return choices.find((choice) => choice === text) ?? null;
}

function seconds(text: string | null): number | null {
  const value = text === null || text === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : null;
}

function look(text: string | null): Place["look"] {
  const [x, y, size] = (text ?? "").split(",").map(Number);
  if (![x, y, size].every(Number.isFinite) || (size as number) <= 0) return null;
  return [x as number, y as number, size as number];
}
