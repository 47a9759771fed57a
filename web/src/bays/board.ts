/**
 * The drawing and what can be done with it, apart from the page around it: it keeps the layout and the
 * camera, draws a frame only when something changed, and says what lies under a point.
 */
import type { Colour, Measure, Place } from "../model/place";
import type { Pod, Rail } from "../model/rows";
import { matchingNodes } from "../model/search";
import type { Store } from "../model/store";
import { type Camera, fit, fromLook, held, pan, reveal, type Size, toLook, zoom } from "./camera";
import { detailAt } from "./detail";
import { draw } from "./draw";
import { railBox } from "./drawbay";
import { Frames } from "./frames";
import { areaAt, type Bay, bayAt, type GroupArea, inside, type Layout, layOut } from "./layout";
import { type Palette, readPalette } from "./palette";
import { drawnRails, holdOf, Stacks } from "./scene";
import { slabAt } from "./stack";

export interface Hit {
  area: GroupArea | null;
  bay: Bay | null;
  pod: Pod | null;
  rail: Rail | null;
}

const GLIDE = 180;

export class Board {
  readonly frames = new Frames();
  layout: Layout;
  camera: Camera = { x: 0, y: 0, scale: 1 };
  /** Told when the reader moved the camera; null when all fits again. */
  onLook: (look: Place["look"]) => void = () => {};
  private readonly ctx: CanvasRenderingContext2D;
  private readonly stacks = new Stacks();
  private palette: Palette;
  private window: Size = { w: 1, h: 1 };
  private open: Size = { w: 1, h: 1 };
  private fitted = true;
  private asked = 0;
  private by: Measure = "cpu";
  private colour: Colour = "state";
  private query = "";
  private matching: Set<string> | null = null;
  private selected: string | null = null;
  private selectedPod: string | null = null;
  private hovered: string | null = null;
  private glide: { from: Camera; to: Camera; began: number } | null = null;

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

  /** The window's size in pixels of the page. */
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

  /** Something lies over the drawing: so much of it can be seen. */
  cover(open: Size): void {
    this.open = { w: Math.max(80, open.w), h: Math.max(80, open.h) };
  }

  /** Bays came, went or changed their size: lay them out anew. */
  reshape(): void {
    const { nodes, groups } = this.store.tables;
    this.layout = layOut(nodes.values(), groups.keys(), this.by, this.window);
    this.stacks.clear();
    if (this.fitted) this.camera = fit(this.layout, this.window);
    this.search();
    this.ask();
  }

  repaint(): void {
    this.palette = readPalette(document.documentElement);
    this.ask();
  }

  /** Show what the reader asked for. */
  show(place: Place): void {
    const measured = place.by !== this.by;
    const searched = place.query !== this.query;
    this.by = place.by;
    this.colour = place.colour;
    this.query = place.query;
    const selection = place.selection;
    const pod = selection?.kind === "pod" ? this.store.tables.pods.get(selection.id) : undefined;
    this.selectedPod = pod?.id ?? null;
    const node = selection?.kind === "node" ? selection.id : pod ? pod.node || pod.upcoming : null;
    this.selected = node || null;
    if (measured) this.reshape();
    else if (searched) this.search();
    this.ask();
  }

  /** The rows changed: what is searched for may lie elsewhere now. */
  changed(): void {
    if (this.query) this.search();
    this.ask();
  }

  hover(id: string | null): void {
    if (id === this.hovered) return;
    this.hovered = id;
    this.ask();
  }

  look(look: Place["look"]): void {
    this.fitted = look === null;
    this.camera = look ? fromLook(look, this.window) : fit(this.layout, this.window);
    this.ask();
  }

  pan(dx: number, dy: number): void {
    this.moved(pan(this.camera, dx, dy));
  }

  zoom(factor: number, x = this.window.w / 2, y = this.window.h / 2): void {
    this.moved(zoom(this.camera, factor, x, y, fit(this.layout, this.window).scale * 0.6));
  }

  fit(): void {
    this.fitted = true;
    this.glideTo(fit(this.layout, this.window));
    this.onLook(null);
  }

  /** Bring a node's bay into the window; at least so many pixels wide, if that is said. */
  reveal(node: string, width: number | null): void {
    const bay = this.layout.bays.get(node);
    if (bay === undefined) return;
    const to = reveal(this.glide?.to ?? this.camera, bay, this.open, width);
    if (to.x === this.camera.x && to.y === this.camera.y && to.scale === this.camera.scale) return;
    this.fitted = false;
    this.glideTo(to);
    this.onLook(toLook(to, this.window));
  }

  /** What lies under a point of the window. */
  hit(px: number, py: number): Hit {
    const x = this.camera.x + px / this.camera.scale;
    const y = this.camera.y + py / this.camera.scale;
    const bay = bayAt(this.layout, x, y);
    if (bay === null) return { area: areaAt(this.layout, x, y), bay, pod: null, rail: null };
    const rails = drawnRails(this.store.rails(bay.node.id));
    const rail = rails.find((_, i) => inside(railBox(bay, rails.length, i), x, y)) ?? null;
    return { area: null, bay, rail, pod: rail ? null : this.podAt(bay, rails.length, x, y) };
  }

  private podAt(bay: Bay, rails: number, x: number, y: number): Pod | null {
    const detail = detailAt(this.camera.scale);
    if (detail === "cell" || detail === "bay") return null;
    const hold = holdOf(bay, rails);
    const slabs = this.stacks.of(this.store, bay, this.by);
    return slabAt(slabs, (x - hold.x) / hold.w, 1 - (y - hold.y) / hold.h)?.pod ?? null;
  }

  private moved(camera: Camera): void {
    this.glide = null;
    this.fitted = false;
    this.camera = held(camera, this.layout, this.window);
    this.onLook(toLook(this.camera, this.window));
    this.ask();
  }

  private search(): void {
    this.matching = matchingNodes(this.store, this.query);
  }

  private glideTo(to: Camera): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.camera = to;
    else this.glide = { from: this.camera, to, began: performance.now() };
    this.ask();
  }

  private ask(): void {
    if (this.asked === 0) this.asked = requestAnimationFrame((now) => this.frame(now));
  }

  private frame(now: number): void {
    this.asked = 0;
    if (this.glide) this.step(now);
    const began = performance.now();
    draw({ ...this.sight(), store: this.store, palette: this.palette, stacks: this.stacks });
    if (!this.store.loaded.value) return;
    this.frames.note(began, performance.now(), this.store.seq);
    this.canvas.dataset.drawn = "true";
  }

  private sight() {
    const { ctx, window, camera, layout, by, colour, matching, selected, selectedPod, hovered } =
      this;
    return { ctx, window, camera, layout, by, colour, matching, selected, selectedPod, hovered };
  }

  private step(now: number): void {
    if (this.glide === null) return;
    const part = Math.min(1, Math.max(0, (now - this.glide.began) / GLIDE));
    const eased = 1 - (1 - part) ** 3;
    const { from, to } = this.glide;
    const between = (a: number, b: number) => a + (b - a) * eased;
    const scale = from.scale * (to.scale / from.scale) ** eased;
    this.camera = { x: between(from.x, to.x), y: between(from.y, to.y), scale };
    if (part === 1) {
      this.camera = to;
      this.glide = null;
    } else this.ask();
  }
}
