/**
 * The layout of the bays, in units in which a bay is `BAY` wide, independent of the zoom. Zones are side
 * by side; a zone has an area for each node group, and an area has its bays in rows. The height of a bay
 * is the size of its node, on one scale for all. The layout has about the aspect ratio of the window.
 */

import type { Measure } from "../model/route";
import type { Node } from "../model/rows";
import { natural } from "../model/search";
import type { Size } from "./camera";

export const BAY = 100;
/** The height of a bay's head, with the node's name and marks. */
export const HEAD = 22;
const HEIGHT = 120;
const LOWEST = 0.4;
const HIGHEST = 4;
const GAP = 14;
const AREA_GAP = 26;
const ZONE_GAP = 60;
const NARROWEST_AREA = 2;
/** The minimum height of an area's title in units, and in pixels if everything is in the window. */
const TITLE = 34;
const TITLE_PIXELS = 17;

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Bay extends Box {
  node: Node;
  /** Whether the node is too large or too small to be drawn to scale. */
  cut: boolean;
}

export interface GroupArea extends Box {
  group: string;
  zone: string;
  bays: Bay[];
  columns: number;
  /** The start of each row below the title, and the end of the last. */
  rows: number[];
  title: number;
}

export interface ZoneBox extends Box {
  id: string;
}

export interface Layout extends Box {
  /** The height of an area's title; a zone's title has 1.5 times of it. */
  title: number;
  zones: ZoneBox[];
  areas: GroupArea[];
  bays: Map<string, Bay>;
}

interface Part {
  group: string;
  zone: string;
  nodes: Node[];
  heights: number[];
  tallest: number;
}

/** Lay out the nodes for a window; `groups` are shown even without nodes. */
export function layOut(
  nodes: Iterable<Node>,
  groups: Iterable<string>,
  by: Measure,
  window: Size,
): Layout {
  const parts = intoParts([...nodes], [...groups], by);
  const zones = [...new Set(parts.map((part) => part.zone))].sort(natural);
  const byZone = zones.map((zone) => parts.filter((part) => part.zone === zone));
  const title = titleHeight(parts, window);
  const columns = bestColumns(byZone, window.w / window.h, title);
  return place(zones, byZone, columns, by, title);
}

/** Return a title height that can be read when everything is in the window. */
function titleHeight(parts: Part[], window: Size): number {
  const area = parts.reduce((sum, part) => {
    return sum + part.nodes.length * (BAY + GAP) * (HEAD + part.tallest + GAP);
  }, 0);
  const scale = Math.sqrt((window.w * window.h) / Math.max(1, area));
  return Math.min(BAY * 2, Math.max(TITLE, TITLE_PIXELS / scale));
}

/** Return the median size of the nodes, which is drawn `HEIGHT` high. */
export function scaleOf(nodes: readonly Node[], by: Measure): number {
  const sizes = nodes.map((node) => node[by]).sort((a, b) => a - b);
  return sizes[Math.floor(sizes.length / 2)] || 1;
}

function intoParts(nodes: Node[], groups: string[], by: Measure): Part[] {
  const reference = scaleOf(nodes, by);
  const parts = new Map<string, Part>();
  const part = (group: string, zone: string) => {
    const key = JSON.stringify([zone, group]);
    const made = parts.get(key) ?? { group, zone, nodes: [], heights: [], tallest: HEIGHT };
    parts.set(key, made);
    return made;
  };
  const known = new Set<string>();
  for (const node of nodes.sort((a, b) => natural(a.id, b.id))) {
    part(node.group, node.zone).nodes.push(node);
    known.add(node.group);
  }
  const last =
    [...parts.values()]
      .map((one) => one.zone)
      .sort(natural)
      .at(-1) ?? "";
  for (const group of groups) if (!known.has(group)) part(group, last);
  for (const one of parts.values()) {
    // A node of unknown size is drawn with the median size.
    one.heights = one.nodes.map((node) => heightOf(node[by] > 0 ? node[by] / reference : 1));
    one.tallest = one.heights.length ? Math.max(...one.heights) : HEIGHT * LOWEST;
  }
  return [...parts.values()].sort((a, b) => natural(a.group, b.group));
}

function heightOf(times: number): number {
  return HEIGHT * Math.min(HIGHEST, Math.max(LOWEST, times));
}

/** Return the bays per row of each zone for which the layout is nearest to an aspect ratio. */
function bestColumns(byZone: Part[][], aspect: number, title: number): number[] {
  const counts = byZone.map((parts) => parts.reduce((sum, part) => sum + part.nodes.length, 0));
  const most = Math.max(1, ...counts);
  let best: number[] = counts.map(() => 1);
  let nearest = Number.POSITIVE_INFINITY;
  for (let wide = 1; wide <= most; wide = Math.max(wide + 1, Math.floor(wide * 1.1))) {
    const columns = counts.map((count) =>
      Math.max(NARROWEST_AREA, Math.ceil(wide * Math.sqrt(count / most))),
    );
    const { w, h } = measure(byZone, columns, title);
    const miss = Math.abs(Math.log(w / h / aspect));
    if (miss < nearest) {
      nearest = miss;
      best = columns;
    }
    if (w / h > aspect * 2) break;
  }
  return best;
}

function measure(byZone: Part[][], columns: number[], title: number): { w: number; h: number } {
  let w = -ZONE_GAP;
  let h = 0;
  byZone.forEach((parts, i) => {
    const shelf = shelves(parts, columns[i] as number, title);
    w += shelf.w + ZONE_GAP;
    h = Math.max(h, shelf.h + title * 1.5);
  });
  return { w: Math.max(w, BAY), h: Math.max(h, BAY) };
}

interface Shelf {
  w: number;
  h: number;
  boxes: { part: Part; box: Box; columns: number }[];
}

/** Place the areas of a zone from left to right, on as many shelves as needed. */
function shelves(parts: Part[], columns: number, title: number): Shelf {
  const width = columns * (BAY + GAP) + GAP;
  const made: Shelf = { w: 0, h: 0, boxes: [] };
  let x = 0;
  let y = 0;
  let shelf = 0;
  for (const part of parts) {
    const mine = Math.max(1, Math.min(columns, part.nodes.length));
    const w = Math.max(mine, NARROWEST_AREA) * (BAY + GAP) + GAP;
    const h = title + (rowsOf(part, mine).at(-1) as number);
    if (x > 0 && x + w > width) {
      x = 0;
      y += shelf + AREA_GAP;
      shelf = 0;
    }
    made.boxes.push({ part, box: { x, y, w, h }, columns: mine });
    made.w = Math.max(made.w, x + w);
    x += w + AREA_GAP;
    shelf = Math.max(shelf, h);
  }
  made.h = y + shelf;
  return made;
}

function place(
  zones: string[],
  byZone: Part[][],
  columns: number[],
  by: Measure,
  title: number,
): Layout {
  const made: Layout = { x: 0, y: 0, w: 0, h: 0, title, zones: [], areas: [], bays: new Map() };
  let x = 0;
  byZone.forEach((parts, i) => {
    const shelf = shelves(parts, columns[i] as number, title);
    const zone = { id: zones[i] as string, x, y: 0, w: shelf.w, h: shelf.h + title * 1.5 };
    made.zones.push(zone);
    for (const { part, box, columns } of shelf.boxes) {
      const area = areaOf(
        part,
        { ...box, x: x + box.x, y: title * 1.5 + box.y },
        columns,
        by,
        title,
      );
      made.areas.push(area);
      for (const bay of area.bays) made.bays.set(bay.node.id, bay);
    }
    x += shelf.w + ZONE_GAP;
    made.h = Math.max(made.h, zone.h);
  });
  made.w = Math.max(BAY, x - ZONE_GAP);
  return made;
}

/** Return the start of each row and the end of the last; a row is as high as its largest node. */
function rowsOf(part: Part, columns: number): number[] {
  const begins = [0];
  for (let i = 0; i < Math.max(1, part.heights.length); i += columns) {
    const height = Math.max(HEIGHT * LOWEST, ...part.heights.slice(i, i + columns));
    begins.push((begins.at(-1) as number) + HEAD + height + GAP);
  }
  return begins;
}

function areaOf(part: Part, box: Box, columns: number, by: Measure, title: number): GroupArea {
  const rows = rowsOf(part, columns).map((begin) => box.y + title + begin);
  const bays = part.nodes.map((node, i) => {
    const height = part.heights[i] as number;
    const bottom = (rows[Math.floor(i / columns) + 1] as number) - GAP;
    const h = height + HEAD;
    const cut = node[by] > 0 && (height === HEIGHT * LOWEST || height === HEIGHT * HIGHEST);
    return { x: box.x + GAP + (i % columns) * (BAY + GAP), y: bottom - h, w: BAY, h, node, cut };
  });
  return { ...box, group: part.group, zone: part.zone, bays, columns, rows, title };
}

/** Return the bay at a point, or null. */
export function bayAt(layout: Layout, x: number, y: number): Bay | null {
  const area = areaAt(layout, x, y);
  if (area === null) return null;
  const column = Math.floor((x - area.x - GAP) / (BAY + GAP));
  const row = rowAt(area, y);
  if (column < 0 || column >= area.columns || row < 0) return null;
  const bay = area.bays[row * area.columns + column];
  return bay && inside(bay, x, y) ? bay : null;
}

/** Return the row at a height: -1 above the first, the number of rows below the last. */
function rowAt(area: GroupArea, y: number): number {
  let low = 0;
  let high = area.rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((area.rows[middle] as number) <= y) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export function areaAt(layout: Layout, x: number, y: number): GroupArea | null {
  return layout.areas.find((area) => inside(area, x, y)) ?? null;
}

/** Yield the bays of an area that may be visible in a box. */
export function* baysWithin(area: GroupArea, view: Box): Generator<Bay> {
  const first = Math.max(0, rowAt(area, view.y));
  const last = rowAt(area, view.y + view.h);
  const left = Math.max(0, Math.floor((view.x - area.x - GAP) / (BAY + GAP)));
  const right = Math.floor((view.x + view.w - area.x - GAP) / (BAY + GAP));
  for (let row = first; row <= last; row++) {
    const end = Math.min(
      row * area.columns + Math.min(right, area.columns - 1),
      area.bays.length - 1,
    );
    for (let i = row * area.columns + left; i <= end; i++) yield area.bays[i] as Bay;
    if (end === area.bays.length - 1) return;
  }
}

export function overlaps(a: Box, b: Box): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

export function inside(box: Box, x: number, y: number): boolean {
  return x >= box.x && x < box.x + box.w && y >= box.y && y < box.y + box.h;
}

/** Return the nearest bay in a direction, for the arrow keys. */
export function neighbour(layout: Layout, from: Bay, dx: number, dy: number): Bay | null {
  const middle = (bay: Bay) => [bay.x + bay.w / 2, bay.y + bay.h / 2] as const;
  const [x, y] = middle(from);
  let best: Bay | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const bay of layout.bays.values()) {
    const [bx, by] = middle(bay);
    const along = (bx - x) * dx + (by - y) * dy;
    const aside = Math.abs((bx - x) * dy) + Math.abs((by - y) * dx);
    const cost = along + 3 * aside;
    if (along > 1 && along >= aside * 0.3 && cost < least) {
      least = cost;
      best = bay;
    }
  }
  return best;
}
