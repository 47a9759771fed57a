/** One bay near enough to see into: its head with name and marks, the hold with its pods, the rails. */

import type { Rail } from "../model/rows";
import type { Detail } from "./detail";
import { MONO, troubled } from "./draw";
import { type Bay, type Box, HEAD } from "./layout";
import { podColour } from "./palette";
import { drawnRails, holdOf, onScreen, RAIL, type Scene } from "./scene";
import type { Slab } from "./stack";

/** The width of a letter of the monospaced face, in parts of its size. */
const LETTER = 0.61;
const DIMMED = 0.22;
const MOST_PLACES = 40;

export function drawBay(scene: Scene, bay: Bay, detail: Detail): void {
  const { ctx, palette, matching } = scene;
  const dimmed = matching !== null && !matching.has(bay.node.id);
  if (dimmed) ctx.globalAlpha = DIMMED;
  const rails = drawnRails(scene.store.rails(bay.node.id));
  const hold = onScreen(scene, holdOf(bay, rails.length));
  ctx.fillStyle = palette.hold;
  ctx.fillRect(hold.x, hold.y, hold.w, hold.h);
  if (detail === "bay") drawSums(scene, bay, hold);
  else drawPods(scene, bay, hold, detail);
  if (bay.cut) drawBreak(scene, hold);
  drawHull(scene, bay, hold);
  rails.forEach((rail, i) => {
    drawRail(scene, bay, rail, i, detail);
  });
  drawHead(scene, bay, detail);
  ctx.globalAlpha = 1;
}

/** How much of the hold is taken, by state: what can be told when pods are too small to draw. */
function drawSums(scene: Scene, bay: Bay, hold: Box): void {
  const { ctx, palette, store, by } = scene;
  const berth = store.berths.of(bay.node.id);
  const part = Math.min(1, berth[by] / Math.max(1, bay.node[by]));
  const h = hold.h * part;
  if (bay.node.upcoming) {
    ghostFill(scene, hold.x, hold.y + hold.h - h, hold.w, h);
    return;
  }
  ctx.fillStyle = palette.states.running as string;
  ctx.fillRect(hold.x, hold.y + hold.h - h, hold.w, h);
  const all = berth.pods.size || 1;
  let top = hold.y + hold.h - h;
  for (const state of ["starting", "leaving", "stuck"]) {
    const slice = (h * (berth.states.get(state) ?? 0)) / all;
    if (slice <= 0) continue;
    ctx.fillStyle = palette.states[state] as string;
    ctx.fillRect(hold.x, top, hold.w, slice);
    top += slice;
  }
}

function drawPods(scene: Scene, bay: Bay, hold: Box, detail: Detail): void {
  const { ctx, palette } = scene;
  const gap = detail === "names" ? 1 : 0.5;
  for (const slab of scene.stacks.of(scene.store, bay, scene.by)) {
    const box = slabBox(hold, slab);
    const w = Math.max(0.5, box.w - gap);
    const h = Math.max(0.5, box.h - gap);
    if (bay.node.upcoming) ghostFill(scene, box.x, box.y, w, h);
    else {
      ctx.fillStyle = podColour(palette, slab.pod, scene.colour);
      ctx.fillRect(box.x, box.y, w, h);
      texture(scene, slab.pod.state, box.x, box.y, w, h);
    }
    if (slab.pod.id === scene.selectedPod) {
      ctx.strokeStyle = palette.focus;
      ctx.lineWidth = 2;
      ctx.strokeRect(box.x + 1, box.y + 1, w - 2, h - 2);
    }
    if (detail === "names" && h >= 10) podName(scene, slab, box.x, box.y, w, h, bay.node.upcoming);
  }
}

export function slabBox(hold: Box, slab: Slab): Box {
  const h = slab.h * hold.h;
  return {
    x: hold.x + slab.x * hold.w,
    y: hold.y + hold.h * (1 - slab.y) - h,
    w: slab.w * hold.w,
    h,
  };
}

function ghostFill(scene: Scene, x: number, y: number, w: number, h: number): void {
  const { ctx, palette } = scene;
  const alpha = ctx.globalAlpha;
  ctx.globalAlpha = alpha * 0.3;
  ctx.fillStyle = palette.ghost;
  ctx.fillRect(x, y, w, h);
  ctx.globalAlpha = alpha;
}

/** States that matter differ by pattern too. */
function texture(scene: Scene, state: string, x: number, y: number, w: number, h: number): void {
  const { ctx, palette } = scene;
  if (state === "stuck" && palette.hatch) ctx.fillStyle = palette.hatch;
  else if (state === "starting" && palette.dots) ctx.fillStyle = palette.dots;
  else if (state === "leaving") {
    ctx.fillStyle = palette.hold;
    ctx.fillRect(x + 1.5, y + 1.5, Math.max(0, w - 3), Math.max(0, h - 3));
    return;
  } else return;
  ctx.fillRect(x, y, w, h);
}

function podName(
  scene: Scene,
  slab: Slab,
  x: number,
  y: number,
  w: number,
  h: number,
  ghost: boolean,
): void {
  const { ctx, palette } = scene;
  const size = Math.min(11, Math.max(8, h * 0.8));
  const fits = Math.floor((w - 6) / (size * LETTER));
  if (fits < 3) return;
  ctx.font = `${size}px ${MONO}`;
  const plain = ghost || slab.pod.state === "leaving";
  ctx.fillStyle = plain ? palette.ink : palette.podInk;
  const name = slab.pod.id.slice(slab.pod.id.indexOf("/") + 1);
  ctx.fillText(shorten(name, fits), x + 3, y + Math.min(h / 2 + size * 0.36, size + 2));
}

export function shorten(text: string, letters: number): string {
  return text.length <= letters ? text : `${text.slice(0, Math.max(1, letters - 1))}…`;
}

/** A zigzag at the top of a hold that is not to scale. */
function drawBreak(scene: Scene, hold: Box): void {
  const { ctx, palette } = scene;
  ctx.strokeStyle = palette.dim;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let i = 0; i <= 8; i++) {
    const y = hold.y + (i % 2 ? 2 : 5);
    if (i === 0) ctx.moveTo(hold.x, y);
    else ctx.lineTo(hold.x + (hold.w * i) / 8, y);
  }
  ctx.stroke();
}

function drawHull(scene: Scene, bay: Bay, hold: Box): void {
  const { ctx, palette } = scene;
  const { node } = bay;
  ctx.lineWidth = 1;
  ctx.strokeStyle = node.upcoming
    ? palette.ghost
    : troubled(scene, bay)
      ? palette.warn
      : palette.line;
  if (node.upcoming) ctx.setLineDash([4, 3]);
  ctx.strokeRect(hold.x - 0.5, hold.y - 0.5, hold.w + 1, hold.h + 1);
  ctx.setLineDash([]);
  if (!node.cordoned) return;
  ctx.strokeStyle = palette.dim;
  ctx.beginPath();
  ctx.moveTo(hold.x, hold.y);
  ctx.lineTo(hold.x + hold.w, hold.y + hold.h);
  ctx.moveTo(hold.x + hold.w, hold.y);
  ctx.lineTo(hold.x, hold.y + hold.h);
  ctx.stroke();
}

/** The places of one driver from the bottom up: taken ones filled, free ones hollow. */
function drawRail(scene: Scene, bay: Bay, rail: Rail, index: number, detail: Detail): void {
  const { ctx, palette, camera } = scene;
  const box = onScreen(
    scene,
    railBox(bay, drawnRails(scene.store.rails(bay.node.id)).length, index),
  );
  const taken = rail.over ? palette.warn : palette.railUsed;
  const places = rail.limit ?? 0;
  if (rail.limit === null || places > MOST_PLACES || detail === "bay" || box.h / places < 3) {
    ctx.fillStyle = palette.railFree;
    ctx.fillRect(box.x, box.y, box.w, box.h);
    const part = rail.limit === null ? 0 : Math.min(1, rail.used / Math.max(1, places));
    ctx.fillStyle = taken;
    ctx.fillRect(box.x, box.y + box.h * (1 - part), box.w, box.h * part);
    if (rail.over) overMark(scene, box);
    return;
  }
  const step = box.h / Math.max(1, places);
  const gap = Math.min(2, step * 0.2);
  for (let i = 0; i < places; i++) {
    const y = box.y + box.h - (i + 1) * step;
    ctx.fillStyle = i < rail.used ? taken : palette.railFree;
    ctx.fillRect(box.x, y + gap / 2, box.w, step - gap);
  }
  if (rail.over) overMark(scene, box);
  if (places === 0 && camera.scale > 0.4) overMark(scene, box);
}

export function railBox(bay: Bay, rails: number, index: number): Box {
  const x = bay.x + bay.w - (rails - index) * RAIL + 2;
  return { x, y: bay.y + HEAD, w: RAIL - 3, h: bay.h - HEAD };
}

function overMark(scene: Scene, box: Box): void {
  const { ctx, palette } = scene;
  ctx.fillStyle = palette.warn;
  ctx.beginPath();
  ctx.moveTo(box.x + box.w / 2, box.y - 7);
  ctx.lineTo(box.x + box.w + 1, box.y - 1);
  ctx.lineTo(box.x - 1, box.y - 1);
  ctx.fill();
}

/** The node's name, after a mark for how it is, before a flag for each taint. */
function drawHead(scene: Scene, bay: Bay, detail: Detail): void {
  const { ctx, palette } = scene;
  const box = onScreen(scene, { x: bay.x, y: bay.y, w: bay.w, h: HEAD });
  const size = Math.min(11, box.h * 0.62);
  readiness(scene, bay, box.x + size * 0.4, box.y + box.h * 0.5, size * 0.34);
  const flags = detail === "names" ? Math.min(3, bay.node.taints.length) : 0;
  for (let i = 0; i < flags; i++)
    flag(scene, box.x + box.w - 2 - (i + 1) * 7, box.y + box.h * 0.22);
  const left = box.x + size * 1.1;
  const fits = Math.floor((box.x + box.w - flags * 7 - left) / (size * LETTER));
  if (size < 6.5 || fits < 4) return;
  ctx.font = `${size}px ${MONO}`;
  ctx.fillStyle = bay.node.upcoming ? palette.dim : palette.ink;
  ctx.fillText(tail(bay.node.id, fits), left, box.y + box.h * 0.5 + size * 0.36);
}

/** Names of nodes differ at their end. */
export function tail(text: string, letters: number): string {
  return text.length <= letters ? text : `…${text.slice(text.length - letters + 1)}`;
}

/** Ready is a full round, not ready a cross, unknown a square, upcoming a ring. */
function readiness(scene: Scene, bay: Bay, x: number, y: number, r: number): void {
  const { ctx, palette } = scene;
  const { node } = bay;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  if (node.upcoming || node.ready === "True") {
    ctx.arc(x, y, r, 0, 7);
    if (node.upcoming) {
      ctx.strokeStyle = palette.ghost;
      ctx.stroke();
    } else {
      ctx.fillStyle = palette.railUsed;
      ctx.fill();
    }
    return;
  }
  ctx.strokeStyle = ctx.fillStyle = palette.warn;
  if (node.ready === "Unknown") {
    ctx.fillRect(x - r, y - r, 2 * r, 2 * r);
    return;
  }
  ctx.moveTo(x - r, y - r);
  ctx.lineTo(x + r, y + r);
  ctx.moveTo(x + r, y - r);
  ctx.lineTo(x - r, y + r);
  ctx.stroke();
}

function flag(scene: Scene, x: number, y: number): void {
  const { ctx, palette } = scene;
  ctx.fillStyle = palette.dim;
  ctx.fillRect(x, y, 1, 11);
  ctx.beginPath();
  ctx.moveTo(x + 1, y);
  ctx.lineTo(x + 6, y + 2.5);
  ctx.lineTo(x + 1, y + 5);
  ctx.fill();
}
