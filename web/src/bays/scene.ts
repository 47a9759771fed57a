/** The input of a frame, and computations that several parts of it share. */
import type { Colour, Measure } from "../model/route";
import type { AttachLimit } from "../model/rows";
import type { Store } from "../model/store";
import type { Camera, Size } from "./camera";
import { type Bay, type Box, HEAD, type Layout } from "./layout";
import type { Palette } from "./palette";
import { type PodBox, stackPods } from "./stack";

export interface Scene {
  ctx: CanvasRenderingContext2D;
  window: Size;
  camera: Camera;
  layout: Layout;
  store: Store;
  palette: Palette;
  stacks: Stacks;
  by: Measure;
  colour: Colour;
  /** The nodes that match the search; null without a search. */
  matching: Set<string> | null;
  selected: string | null;
  selectedPod: string | null;
  hovered: string | null;
}

/** Return a box of the drawing in screen coordinates. */
export function onScreen({ camera }: Pick<Scene, "camera">, box: Box): Box {
  return {
    x: (box.x - camera.x) * camera.scale,
    y: (box.y - camera.y) * camera.scale,
    w: box.w * camera.scale,
    h: box.h * camera.scale,
  };
}

/** The width of a driver's column of attach slots. */
export const COLUMN = 11;
const MOST_COLUMNS = 4;

/** Return the attach limits that are drawn, at most four; the details list all. */
export function drawnLimits(limits: readonly AttachLimit[]): readonly AttachLimit[] {
  return limits.length > MOST_COLUMNS ? limits.slice(0, MOST_COLUMNS) : limits;
}

/** Return the part of a bay in which pods are drawn: below its head, left of the attach slots. */
export function podAreaOf(bay: Bay, columns: number): Box {
  const slots = columns ? columns * COLUMN + 3 : 0;
  return { x: bay.x, y: bay.y + HEAD, w: bay.w - slots, h: bay.h - HEAD };
}

/** The boxes of pods by node, cached until the pods of the node change. */
export class Stacks {
  private readonly kept = new Map<string, { version: number; by: Measure; boxes: PodBox[] }>();

  of(store: Store, bay: Bay, by: Measure): PodBox[] {
    const usage = store.usage.of(bay.node.id);
    const kept = this.kept.get(bay.node.id);
    if (kept && kept.version === usage.version && kept.by === by) return kept.boxes;
    const boxes = stackPods(usage, bay.node[by], by);
    this.kept.set(bay.node.id, { version: usage.version, by, boxes });
    return boxes;
  }

  clear(): void {
    this.kept.clear();
  }
}
