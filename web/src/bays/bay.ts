/** Draws one bay: its head with name and marks, its pods, and the attach slots of each driver. */

import type { AttachLimit } from "../model/rows";
import type { Detail } from "./detail";
import { hasProblem, MONO } from "./frame";
import { type Bay, type Box, HEAD } from "./layout";
import { podColour } from "./palette";
import { COLUMN, drawnLimits, onScreen, podAreaOf, type Scene } from "./scene";
import type { PodBox } from "./stack";

/** The width of a letter of the monospaced font, relative to its size. */
const LETTER = 0.61;
const DIMMED = 0.22;
const MOST_SLOTS = 40;

export function drawBay(scene: Scene, bay: Bay, detail: Detail): void {
  const { ctx, palette, matching } = scene;
  const dimmed = matching !== null && !matching.has(bay.node.id);
  if (dimmed) ctx.globalAlpha = DIMMED;
  const limits = drawnLimits(scene.store.attachLimits(bay.node.id));
  const area = onScreen(scene, podAreaOf(bay, limits.length));
  ctx.fillStyle = palette.podArea;
  ctx.fillRect(area.x, area.y, area.w, area.h);
  if (detail === "bay") drawSums(scene, bay, area);
  else drawPods(scene, bay, area, detail);
  if (bay.cut) drawBreak(scene, area);
  drawBorder(scene, bay, area);
  limits.forEach((limit, i) => {
    drawSlots(scene, bay, limit, i, detail);
  });
  drawHead(scene, bay, detail);
  ctx.globalAlpha = 1;
}

/** Draw the usage by state, where pods are too small to draw. */
function drawSums(scene: Scene, bay: Bay, area: Box): void {
  const { ctx, palette, store, by } = scene;
  const usage = store.usage.of(bay.node.id);
  const part = Math.min(1, usage[by] / Math.max(1, bay.node[by]));
  const h = area.h * part;
  if (bay.node.upcoming) {
    fillUpcoming(scene, area.x, area.y + area.h - h, area.w, h);
    return;
  }
  ctx.fillStyle = palette.states.running as string;
  ctx.fillRect(area.x, area.y + area.h - h, area.w, h);
  const all = usage.pods.size || 1;
  let top = area.y + area.h - h;
  for (const state of ["starting", "leaving", "stuck"]) {
    const slice = (h * (usage.states.get(state) ?? 0)) / all;
    if (slice <= 0) continue;
    ctx.fillStyle = palette.states[state] as string;
    ctx.fillRect(area.x, top, area.w, slice);
    top += slice;
  }
}

function drawPods(scene: Scene, bay: Bay, area: Box, detail: Detail): void {
  const { ctx, palette } = scene;
  const gap = detail === "names" ? 1 : 0.5;
  for (const podBox of scene.stacks.of(scene.store, bay, scene.by)) {
    const box = onNode(area, podBox);
    const w = Math.max(0.5, box.w - gap);
    const h = Math.max(0.5, box.h - gap);
    if (bay.node.upcoming) fillUpcoming(scene, box.x, box.y, w, h);
    else {
      ctx.fillStyle = podColour(palette, podBox.pod, scene.colour);
      ctx.fillRect(box.x, box.y, w, h);
      texture(scene, podBox.pod.state, box.x, box.y, w, h);
    }
    if (podBox.pod.id === scene.selectedPod) {
      ctx.strokeStyle = palette.focus;
      ctx.lineWidth = 2;
      ctx.strokeRect(box.x + 1, box.y + 1, w - 2, h - 2);
    }
    if (detail === "names" && h >= 10)
      podName(scene, podBox, box.x, box.y, w, h, bay.node.upcoming);
  }
}

/** Return the box of a pod in the coordinates of the area. */
export function onNode(area: Box, box: PodBox): Box {
  const h = box.h * area.h;
  return {
    x: area.x + box.x * area.w,
    y: area.y + area.h * (1 - box.y) - h,
    w: box.w * area.w,
    h,
  };
}

function fillUpcoming(scene: Scene, x: number, y: number, w: number, h: number): void {
  const { ctx, palette } = scene;
  const alpha = ctx.globalAlpha;
  ctx.globalAlpha = alpha * 0.3;
  ctx.fillStyle = palette.upcoming;
  ctx.fillRect(x, y, w, h);
  ctx.globalAlpha = alpha;
}

/** Draw the pattern of a pod's state: states differ not by colour alone. */
function texture(scene: Scene, state: string, x: number, y: number, w: number, h: number): void {
  const { ctx, palette } = scene;
  if (state === "stuck" && palette.hatch) ctx.fillStyle = palette.hatch;
  else if (state === "starting" && palette.dots) ctx.fillStyle = palette.dots;
  else if (state === "leaving") {
    ctx.fillStyle = palette.podArea;
    ctx.fillRect(x + 1.5, y + 1.5, Math.max(0, w - 3), Math.max(0, h - 3));
    return;
  } else return;
  ctx.fillRect(x, y, w, h);
}

function podName(
  scene: Scene,
  podBox: PodBox,
  x: number,
  y: number,
  w: number,
  h: number,
  isUpcoming: boolean,
): void {
  const { ctx, palette } = scene;
  const size = Math.min(11, Math.max(8, h * 0.8));
  const fits = Math.floor((w - 6) / (size * LETTER));
  if (fits < 3) return;
  ctx.font = `${size}px ${MONO}`;
  const plain = isUpcoming || podBox.pod.state === "leaving";
  ctx.fillStyle = plain ? palette.ink : palette.podInk;
  const name = podBox.pod.id.slice(podBox.pod.id.indexOf("/") + 1);
  ctx.fillText(shorten(name, fits), x + 3, y + Math.min(h / 2 + size * 0.36, size + 2));
}

export function shorten(text: string, letters: number): string {
  return text.length <= letters ? text : `${text.slice(0, Math.max(1, letters - 1))}…`;
}

/** Draw a zigzag at the top of a bay that is not to scale. */
function drawBreak(scene: Scene, area: Box): void {
  const { ctx, palette } = scene;
  ctx.strokeStyle = palette.dim;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let i = 0; i <= 8; i++) {
    const y = area.y + (i % 2 ? 2 : 5);
    if (i === 0) ctx.moveTo(area.x, y);
    else ctx.lineTo(area.x + (area.w * i) / 8, y);
  }
  ctx.stroke();
}

function drawBorder(scene: Scene, bay: Bay, area: Box): void {
  const { ctx, palette } = scene;
  const { node } = bay;
  ctx.lineWidth = 1;
  ctx.strokeStyle = node.upcoming
    ? palette.upcoming
    : hasProblem(scene, bay)
      ? palette.warn
      : palette.line;
  if (node.upcoming) ctx.setLineDash([4, 3]);
  ctx.strokeRect(area.x - 0.5, area.y - 0.5, area.w + 1, area.h + 1);
  ctx.setLineDash([]);
  if (!node.cordoned) return;
  ctx.strokeStyle = palette.dim;
  ctx.beginPath();
  ctx.moveTo(area.x, area.y);
  ctx.lineTo(area.x + area.w, area.y + area.h);
  ctx.moveTo(area.x + area.w, area.y);
  ctx.lineTo(area.x, area.y + area.h);
  ctx.stroke();
}

/** Draw the attach slots of a driver from the bottom up, used ones first. */
function drawSlots(
  scene: Scene,
  bay: Bay,
  limit: AttachLimit,
  index: number,
  detail: Detail,
): void {
  const { ctx, palette, camera } = scene;
  const box = onScreen(
    scene,
    slotColumn(bay, drawnLimits(scene.store.attachLimits(bay.node.id)).length, index),
  );
  const used = limit.over ? palette.warn : palette.slotUsed;
  const slots = limit.limit ?? 0;
  if (limit.limit === null || slots > MOST_SLOTS || detail === "bay" || box.h / slots < 3) {
    ctx.fillStyle = palette.slotFree;
    ctx.fillRect(box.x, box.y, box.w, box.h);
    const part = limit.limit === null ? 0 : Math.min(1, limit.used / Math.max(1, slots));
    ctx.fillStyle = used;
    ctx.fillRect(box.x, box.y + box.h * (1 - part), box.w, box.h * part);
    if (limit.over) overMark(scene, box);
    return;
  }
  const step = box.h / Math.max(1, slots);
  const gap = Math.min(2, step * 0.2);
  for (let i = 0; i < slots; i++) {
    const y = box.y + box.h - (i + 1) * step;
    ctx.fillStyle = i < limit.used ? used : palette.slotFree;
    ctx.fillRect(box.x, y + gap / 2, box.w, step - gap);
  }
  if (limit.over) overMark(scene, box);
  if (slots === 0 && camera.scale > 0.4) overMark(scene, box);
}

export function slotColumn(bay: Bay, columns: number, index: number): Box {
  const x = bay.x + bay.w - (columns - index) * COLUMN + 2;
  return { x, y: bay.y + HEAD, w: COLUMN - 3, h: bay.h - HEAD };
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

/** Draw the node's readiness, its name, and a flag for each taint. */
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

/** Shorten a node's name at its beginning: names differ at their end. */
export function tail(text: string, letters: number): string {
  return text.length <= letters ? text : `…${text.slice(text.length - letters + 1)}`;
}

/** Draw the readiness: ready is a disc, not ready a cross, unknown a square, upcoming a ring. */
function readiness(scene: Scene, bay: Bay, x: number, y: number, r: number): void {
  const { ctx, palette } = scene;
  const { node } = bay;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  if (node.upcoming || node.ready === "True") {
    ctx.arc(x, y, r, 0, 7);
    if (node.upcoming) {
      ctx.strokeStyle = palette.upcoming;
      ctx.stroke();
    } else {
      ctx.fillStyle = palette.slotUsed;
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
