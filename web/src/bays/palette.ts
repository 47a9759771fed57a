/**
 * The colours of the drawing, read from the style sheet, so that they are defined once and follow the
 * theme. States also differ by pattern, never by colour alone.
 */
import type { Colour } from "../model/route";
import type { Pod } from "../model/rows";

export interface Palette {
  ink: string;
  dim: string;
  paper: string;
  area: string;
  podArea: string;
  line: string;
  upcoming: string;
  warn: string;
  focus: string;
  slotUsed: string;
  slotFree: string;
  states: Record<string, string>;
  podInk: string;
  tints: string[];
  full: string[];
  hatch: CanvasPattern | null;
  dots: CanvasPattern | null;
}

const STATES = ["running", "starting", "stuck", "waiting", "gated", "leaving", "done"];
const TINTS = 8;

export function readPalette(root: Element): Palette {
  const style = getComputedStyle(root);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const ink = of("pod-ink");
  return {
    ink: of("ink"),
    dim: of("dim"),
    paper: of("paper"),
    area: of("area"),
    podArea: of("pod-area"),
    line: of("line"),
    upcoming: of("upcoming"),
    warn: of("warn"),
    focus: of("focus"),
    slotUsed: of("slot-used"),
    slotFree: of("slot-free"),
    states: Object.fromEntries(STATES.map((state) => [state, of(`pod-${state}`)])),
    podInk: ink,
    tints: Array.from({ length: TINTS }, (_, i) => of(`tint-${i}`)),
    full: Array.from({ length: 11 }, (_, i) => of(`full-${i}`)),
    hatch: pattern(ink, 0.55, (ctx) => {
      ctx.moveTo(-2, 8);
      ctx.lineTo(8, -2);
      ctx.moveTo(2, 12);
      ctx.lineTo(12, 2);
      ctx.stroke();
    }),
    dots: pattern(ink, 0.35, (ctx) => {
      ctx.fillRect(1, 1, 1.6, 1.6);
      ctx.fillRect(6, 6, 1.6, 1.6);
    }),
  };
}

/** Return the colour of a pod: by its state, or a tint for its namespace, owner or queue. */
export function podColour(palette: Palette, pod: Pod, by: Colour): string {
  if (by === "state") return palette.states[pod.state] ?? palette.states.running ?? "";
  return palette.tints[hash(colourKey(pod, by)) % TINTS] ?? "";
}

/** Return the value of a pod by which it is coloured. */
export function colourKey(pod: Pod, by: Colour): string {
  if (by === "namespace") return pod.id.slice(0, pod.id.indexOf("/"));
  return by === "owner" ? pod.owner : by === "queue" ? pod.queue : pod.state;
}

export function hash(text: string): number {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

function pattern(colour: string, alpha: number, draw: (ctx: CanvasRenderingContext2D) => void) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 10;
  const ctx = tile.getContext("2d");
  if (ctx === null) return null;
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.globalAlpha = alpha;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  draw(ctx);
  return ctx.createPattern(tile, "repeat");
}
