/** What is to be drawn: everything a frame needs, gathered; and the sums that more than one part needs. */
import type { Colour, Measure } from "../model/place";
import type { Rail } from "../model/rows";
import type { Store } from "../model/store";
import type { Camera, Size } from "./camera";
import { type Bay, type Box, HEAD, type Layout } from "./layout";
import type { Palette } from "./palette";
import { type Slab, stow } from "./stack";

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
  /** The nodes that are searched for; null when nothing is. */
  matching: Set<string> | null;
  selected: string | null;
  selectedPod: string | null;
  hovered: string | null;
}

/** A box of the drawing on the screen. */
export function onScreen({ camera }: Pick<Scene, "camera">, box: Box): Box {
  return {
    x: (box.x - camera.x) * camera.scale,
    y: (box.y - camera.y) * camera.scale,
    w: box.w * camera.scale,
    h: box.h * camera.scale,
  };
}

export const RAIL = 11;
const MOST_RAILS = 4;

/** Rails that have a column of their own; a fifth driver and more are only told in words. */
export function drawnRails(rails: readonly Rail[]): readonly Rail[] {
  return rails.length > MOST_RAILS ? rails.slice(0, MOST_RAILS) : rails;
}

/** The part of a bay where pods lie: under its head, left of its rails. */
export function holdOf(bay: Bay, rails: number): Box {
  const rail = rails ? rails * RAIL + 3 : 0;
  return { x: bay.x, y: bay.y + HEAD, w: bay.w - rail, h: bay.h - HEAD };
}

/** How pods are stowed, kept until the pods of a bay change. */
export class Stacks {
  private readonly kept = new Map<string, { version: number; by: Measure; slabs: Slab[] }>();

  of(store: Store, bay: Bay, by: Measure): Slab[] {
    const berth = store.berths.of(bay.node.id);
    const kept = this.kept.get(bay.node.id);
    if (kept && kept.version === berth.version && kept.by === by) return kept.slabs;
    const slabs = stow(berth, bay.node[by], by);
    this.kept.set(bay.node.id, { version: berth.version, by, slabs });
    return slabs;
  }

  clear(): void {
    this.kept.clear();
  }
}
