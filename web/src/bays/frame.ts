/** Draws a frame: zones, node groups and the visible bays, in the detail that fits their size. */
import { plural } from "../model/formats";
import { drawBay } from "./bay";
import { visible } from "./camera";
import { detailAt, fullness } from "./detail";
import { type Bay, type Box, baysWithin, type GroupArea, overlaps } from "./layout";
import { onScreen, type Scene } from "./scene";

export const MONO = "ui-monospace, 'SFMono-Regular', 'DejaVu Sans Mono', Menlo, monospace";
const SANS = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";

export function draw(scene: Scene): void {
  const { ctx, window, palette, layout } = scene;
  ctx.fillStyle = palette.paper;
  ctx.fillRect(0, 0, window.w, window.h);
  const view = visible(scene.camera, window);
  const detail = detailAt(scene.camera.scale);
  for (const zone of layout.zones) drawZone(scene, zone);
  for (const area of layout.areas) {
    if (!overlaps(area, view)) continue;
    drawArea(scene, area);
    if (detail === "cell") drawCells(scene, baysWithin(area, view));
    else for (const bay of baysWithin(area, view)) drawBay(scene, bay, detail);
  }
  outline(scene, scene.hovered, 1);
  outline(scene, scene.selected, 2.5);
}

function drawZone(scene: Scene, zone: Box & { id: string }): void {
  const { ctx, palette, layout } = scene;
  const box = onScreen(scene, zone);
  const title = layout.title * 1.5 * scene.camera.scale;
  if (title < 11) return;
  const size = Math.min(15, title * 0.5);
  ctx.font = `600 ${size}px ${SANS}`;
  ctx.fillStyle = palette.dim;
  const name = zone.id || (layout.zones.length > 1 ? "no zone" : "");
  if (name === "") return;
  label(scene, name, Math.max(box.x, 8), box.y + title * 0.5, Math.max(0, box.w - 8));
  ctx.strokeStyle = palette.line;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(box.x, Math.round(box.y + title * 0.68) + 0.5);
  ctx.lineTo(box.x + box.w, Math.round(box.y + title * 0.68) + 0.5);
  ctx.stroke();
}

function drawArea(scene: Scene, area: GroupArea): void {
  const { ctx, palette } = scene;
  const box = onScreen(scene, area);
  ctx.fillStyle = palette.area;
  ctx.fillRect(box.x, box.y, box.w, box.h);
  const title = area.title * scene.camera.scale;
  if (title < 9) return;
  const size = Math.min(title > 60 ? 20 : 13, title * 0.62);
  ctx.font = `600 ${size}px ${SANS}`;
  ctx.fillStyle = palette.ink;
  const baseline = box.y + title - Math.max(size * 0.4, Math.min(14, title - 20));
  const x = box.x + 8;
  const name = label(scene, groupName(scene, area), x, baseline, box.w - 14);
  ctx.font = `${size}px ${SANS}`;
  ctx.fillStyle = palette.dim;
  label(scene, groupSize(scene, area), x + name + 8, baseline, box.w - 22 - name);
}

export function groupName(scene: Pick<Scene, "store">, area: GroupArea): string {
  return scene.store.tables.groups.get(area.group)?.title || area.group || "no group";
}

/** Return a group's size, its target if it differs, and its limits. */
function groupSize(scene: Scene, area: GroupArea): string {
  const group = scene.store.tables.groups.get(area.group);
  if (group === undefined) return plural(area.bays.length, "node");
  const limits = group.max === null ? "" : `, min ${group.min ?? 0}, max ${group.max}`;
  const target = group.target === group.size ? "" : ` → ${group.target}`;
  return `${group.size}${target} ${group.target === 1 ? "node" : "nodes"}${limits}`;
}

/** Draw a text, shortened to a width; return the width of what was drawn. */
function label(scene: Scene, text: string, x: number, y: number, limit: number): number {
  const { ctx } = scene;
  if (limit < 12 || text === "") return 0;
  let shown = text;
  let width = ctx.measureText(shown).width;
  if (width > limit) {
    const fits = Math.floor((shown.length * limit) / width) - 1;
    if (fits < 2) return 0;
    shown = `${shown.slice(0, fits)}…`;
    width = ctx.measureText(shown).width;
  }
  ctx.fillText(shown, x, y);
  return width;
}

/** Zoomed out: one cell per node, coloured by usage; a problem has a shape as well as a colour. */
function drawCells(scene: Scene, bays: Iterable<Bay>): void {
  const { ctx, palette, store, by } = scene;
  const levels: Bay[][] = palette.full.map(() => []);
  const marked: Bay[] = [];
  const dimmed: Bay[] = [];
  for (const bay of bays) {
    const node = bay.node;
    if (scene.matching && !scene.matching.has(node.id)) dimmed.push(bay);
    else {
      if (!node.upcoming) levels[fullness(store.usage.of(node.id)[by], node[by])]?.push(bay);
      if (hasProblem(scene, bay) || node.upcoming || node.cordoned) marked.push(bay);
    }
  }
  levels.forEach((level, i) => {
    fillAll(scene, level, palette.full[i] as string);
  });
  ctx.globalAlpha = 0.25;
  fillAll(scene, dimmed, palette.line);
  ctx.globalAlpha = 1;
  for (const bay of marked) mark(scene, bay);
}

function fillAll(scene: Scene, bays: Bay[], colour: string): void {
  const { ctx } = scene;
  ctx.fillStyle = colour;
  for (const bay of bays) {
    const { x, y, w, h } = onScreen(scene, bay);
    ctx.fillRect(x, y, w, h);
  }
}

/** Return whether a node is not ready, lacks a driver or has a stuck pod. */
export function hasProblem({ store }: Pick<Scene, "store">, bay: Bay): boolean {
  const { node } = bay;
  if (node.upcoming) return false;
  if (node.ready !== "True" || node.missing.length > 0) return true;
  return (store.usage.of(node.id).states.get("stuck") ?? 0) > 0;
}

/** Mark a cell: dashed outline if upcoming, a bar if cordoned, a triangle for a problem. */
function mark(scene: Scene, bay: Bay): void {
  const { ctx, palette } = scene;
  const { x, y, w, h } = onScreen(scene, bay);
  if (bay.node.upcoming) {
    ctx.strokeStyle = palette.upcoming;
    ctx.lineWidth = 1;
    ctx.setLineDash([2, 2]);
    ctx.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    ctx.setLineDash([]);
  }
  if (bay.node.cordoned) {
    ctx.fillStyle = palette.ink;
    ctx.fillRect(x, y + h * 0.45, w, Math.max(1, h * 0.1));
  }
  if (!hasProblem(scene, bay)) return;
  ctx.fillStyle = palette.warn;
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x + w, y);
  ctx.lineTo(x, y + Math.min(w, h));
  ctx.fill();
}

function outline(scene: Scene, id: string | null, width: number): void {
  const bay = id === null ? undefined : scene.layout.bays.get(id);
  if (bay === undefined) return;
  const { ctx, palette } = scene;
  const { x, y, w, h } = onScreen(scene, bay);
  ctx.strokeStyle = palette.focus;
  ctx.lineWidth = width;
  ctx.strokeRect(x - width, y - width, w + 2 * width, h + 2 * width);
}
