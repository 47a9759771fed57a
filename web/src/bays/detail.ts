/** Levels of detail, by the width of a bay on the screen. */
import { BAY } from "./layout";

export type Detail = "cell" | "bay" | "pods" | "names";

const BAY_FROM = 20;
const PODS_FROM = 48;
const NAMES_FROM = 92;

/** Return the level: cells coloured by usage, bays with sums and slots, then pods, then names. */
export function detailAt(scale: number): Detail {
  const width = scale * BAY;
  if (width < BAY_FROM) return "cell";
  if (width < PODS_FROM) return "bay";
  return width < NAMES_FROM ? "pods" : "names";
}

/** Return the usage in tenths: 0 for empty, 10 for full or over. */
export function fullness(used: number, capacity: number): number {
  if (!(capacity > 0 && used > 0)) return 0;
  return Math.min(10, Math.ceil((10 * used) / capacity - 1e-9));
}
