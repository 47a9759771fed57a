/**
 * The canvas with the bays: keeps the layout and the camera, draws a frame only after a change, and
 * returns what is drawn at a point.
 */
import type { Colour, Measure, Route } from "../model/route";
import type { AttachLimit, Pod } from "../model/rows";
import { matchingNodes } from "../model/search";
import type { Store } from "../model/store";
import { slotColumn } from "./bay";
import {
  type Camera,
  clamped,
  fit,
  fromLook,
  pan,
  reveal,
  type Size,
  toLook,
  zoom,
} from "./camera";
import { detailAt } from "./detail";
import { draw } from "./frame";
import { Frames } from "./frames";
import { areaAt, type Bay, bayAt, type GroupArea, inside, type Layout, layOut } from "./layout";
import { type Palette, readPalette } from "./palette";
import { drawnLimits, podAreaOf, Stacks } from "./scene";
import { boxAt } from "./stack";

export interface Hit {
  area: GroupArea | null;
  bay: Bay | null;
  pod: Pod | null;
  limit: AttachLimit | null;
}

const MOVE_MS = 180;

export class Board {
  readonly frames = new Frames();
  layout: Layout;
  camera: Camera = { x: 0, y: 0, scale: 1 };
  /** Called when the user has moved the camera; null when everything fits again. */
  onLook: (look: Route["look"]) => void = () => {};
  private readonly ctx: CanvasRenderingContext2D;
  private readonly stacks = new Stacks();
  private palette: Palette;
  private window: Size = { w: 1, h: 1 };
  private open: Size = { w: 1, h: 1 };
  private fitted = true;
  private requested = 0;
  private by: Measure = "cpu";
  private colour: Colour = "state";
  private query = "";
  private matching: Set<string> | null = null;
  private selected: string | null = null;
  private selectedPod: string | null = null;
  private hovered: string | null = null;
  private movement: { from: Camera; to: Camera; began: number } | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly store: Store,
  ) {
    const ctx = canvas.getContext("2d", { alpha: false });
    if (ctx === null) throw new Error("This browser cannot draw on a canvas.");
    this.ctx = ctx;
    this.palette = readPalette(document.documentElement);
    this.layout = layOut([], [], this.by, this.window);
  }

  /** Set the size of the window in CSS pixels. */
  resize(w: number, h: number): void {
    if (w <= 0 || h <= 0) return;
    const dense = Math.min(2, devicePixelRatio || 1);
    const look = this.fitted ? null : toLook(this.camera, this.window);
    this.window = this.open = { w, h };
    this.canvas.width = Math.round(w * dense);
    this.canvas.height = Math.round(h * dense);
    this.ctx.setTransform(dense, 0, 0, dense, 0, 0);
    if (look) this.camera = fromLook(look, this.window);
    this.reshape();
  }

  /** Set the size of the part that is not covered by the details. */
  cover(open: Size): void {
    this.open = { w: Math.max(80, open.w), h: Math.max(80, open.h) };
  }

  /** Compute the layout again: bays were added, removed or resized. */
  reshape(): void {
    const { nodes, groups } = this.store.tables;
    this.layout = layOut(nodes.values(), groups.keys(), this.by, this.window);
    this.stacks.clear();
    if (this.fitted) this.camera = fit(this.layout, this.window);
    this.search();
    this.requestFrame();
  }

  repaint(): void {
    this.palette = readPalette(document.documentElement);
    this.requestFrame();
  }

  /** Show what the route selects. */
  show(route: Route): void {
    const measured = route.by !== this.by;
    const searched = route.query !== this.query;
    this.by = route.by;
    this.colour = route.colour;
    this.query = route.query;
    const selection = route.selection;
    const pod = selection?.kind === "pod" ? this.store.tables.pods.get(selection.id) : undefined;
    this.selectedPod = pod?.id ?? null;
    const node = selection?.kind === "node" ? selection.id : pod ? pod.node || pod.upcoming : null;
    this.selected = node || null;
    if (measured) this.reshape();
    else if (searched) this.search();
    this.requestFrame();
  }

  /** Draw again after a change of rows; other nodes may match the search now. */
  changed(): void {
    if (this.query) this.search();
    this.requestFrame();
  }

  hover(id: string | null): void {
    if (id === this.hovered) return;
    this.hovered = id;
    this.requestFrame();
  }

  look(look: Route["look"]): void {
    this.fitted = look === null;
    this.camera = look ? fromLook(look, this.window) : fit(this.layout, this.window);
    this.requestFrame();
  }

  pan(dx: number, dy: number): void {
    this.setCamera(pan(this.camera, dx, dy));
  }

  zoom(factor: number, x = this.window.w / 2, y = this.window.h / 2): void {
    this.setCamera(zoom(this.camera, factor, x, y, fit(this.layout, this.window).scale * 0.6));
  }

  fit(): void {
    this.fitted = true;
    this.moveTo(fit(this.layout, this.window));
    this.onLook(null);
  }

  /** Move a node's bay into the window; with `width`, zoom in until it has so many pixels. */
  reveal(node: string, width: number | null): void {
    const bay = this.layout.bays.get(node);
    if (bay === undefined) return;
    const to = reveal(this.movement?.to ?? this.camera, bay, this.open, width);
    if (to.x === this.camera.x && to.y === this.camera.y && to.scale === this.camera.scale) return;
    this.fitted = false;
    this.moveTo(to);
    this.onLook(toLook(to, this.window));
  }

  /** Return what is drawn at a point of the window. */
  hit(px: number, py: number): Hit {
    const x = this.camera.x + px / this.camera.scale;
    const y = this.camera.y + py / this.camera.scale;
    const bay = bayAt(this.layout, x, y);
    if (bay === null) return { area: areaAt(this.layout, x, y), bay, pod: null, limit: null };
    const limits = drawnLimits(this.store.attachLimits(bay.node.id));
    const limit = limits.find((_, i) => inside(slotColumn(bay, limits.length, i), x, y)) ?? null;
    return { area: null, bay, limit, pod: limit ? null : this.podAt(bay, limits.length, x, y) };
  }

  private podAt(bay: Bay, columns: number, x: number, y: number): Pod | null {
    const detail = detailAt(this.camera.scale);
    if (detail === "cell" || detail === "bay") return null;
    const area = podAreaOf(bay, columns);
    const boxes = this.stacks.of(this.store, bay, this.by);
    return boxAt(boxes, (x - area.x) / area.w, 1 - (y - area.y) / area.h)?.pod ?? null;
  }

  private setCamera(camera: Camera): void {
    this.movement = null;
    this.fitted = false;
    this.camera = clamped(camera, this.layout, this.window);
    this.onLook(toLook(this.camera, this.window));
    this.requestFrame();
  }

  private search(): void {
    this.matching = matchingNodes(this.store, this.query);
  }

  private moveTo(to: Camera): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.camera = to;
    else this.movement = { from: this.camera, to, began: performance.now() };
    this.requestFrame();
  }

  private requestFrame(): void {
    if (this.requested === 0) this.requested = requestAnimationFrame((now) => this.frame(now));
  }

  private frame(now: number): void {
    this.requested = 0;
    if (this.movement) this.step(now);
    const began = performance.now();
    draw({ ...this.view(), store: this.store, palette: this.palette, stacks: this.stacks });
    if (!this.store.loaded.value) return;
    this.frames.note(began, performance.now(), this.store.seq);
    this.canvas.dataset.drawn = "true";
  }

  private view() {
    const { ctx, window, camera, layout, by, colour, matching, selected, selectedPod, hovered } =
      this;
    return { ctx, window, camera, layout, by, colour, matching, selected, selectedPod, hovered };
  }

  private step(now: number): void {
    if (this.movement === null) return;
    const part = Math.min(1, Math.max(0, (now - this.movement.began) / MOVE_MS));
    const eased = 1 - (1 - part) ** 3;
    const { from, to } = this.movement;
    const between = (a: number, b: number) => a + (b - a) * eased;
    const scale = from.scale * (to.scale / from.scale) ** eased;
    this.camera = { x: between(from.x, to.x), y: between(from.y, to.y), scale };
    if (part === 1) {
      this.camera = to;
      this.movement = null;
    } else this.requestFrame();
  }
}
