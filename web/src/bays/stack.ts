/**
 * The boxes of the pods in a bay: to scale, the largest at the bottom. A large pod has a row of its own;
 * smaller ones share a row. Pods without requests are in a thin row at the top, which is not to scale.
 */

import type { Measure } from "../model/route";
import type { Pod } from "../model/rows";
import { natural } from "../model/search";
import type { NodeUsage } from "../model/usage";

export interface PodBox {
  pod: Pod;
  /** Position and size from the lower left corner, as fractions of the bay. */
  x: number;
  y: number;
  w: number;
  h: number;
}

/** The minimum height of a row, as a fraction of the bay. */
const MIN_ROW = 0.06;
/** The height of the row of pods without requests. */
const NO_REQUEST_ROW = 0.025;

/** Return the boxes of the pods of a node with a capacity. */
export function stackPods(usage: NodeUsage, capacity: number, by: Measure): PodBox[] {
  const all = [...usage.pods.values()].filter((pod) => pod.state !== "done");
  const sized = all.filter((pod) => pod[by] > 0);
  sized.sort((a, b) => b[by] - a[by] || natural(a.id, b.id));
  const total = sized.reduce((sum, pod) => sum + pod[by], 0);
  const scale = 1 / Math.max(capacity, total, 1);
  const boxes: PodBox[] = [];
  let height = 0;
  for (const row of intoRows(sized, by, MIN_ROW / scale)) {
    const sum = row.reduce((of, pod) => of + pod[by], 0);
    height = addRow(boxes, row, (pod) => pod[by] / sum, height, sum * scale);
  }
  const free = all.filter((pod) => !(pod[by] > 0)).sort((a, b) => natural(a.id, b.id));
  addRow(boxes, free, () => 1 / free.length, Math.min(height, 1 - NO_REQUEST_ROW), NO_REQUEST_ROW);
  return boxes;
}

/** Divide sorted pods into rows that are high enough. */
function intoRows(pods: Pod[], by: Measure, enough: number): Pod[][] {
  const made: Pod[][] = [];
  let row: Pod[] = [];
  let sum = 0;
  for (const pod of pods) {
    row.push(pod);
    sum += pod[by];
    if (sum >= enough) {
      made.push(row);
      row = [];
      sum = 0;
    }
  }
  if (row.length) made.push(row);
  return made;
}

function addRow(
  into: PodBox[],
  row: Pod[],
  share: (pod: Pod) => number,
  y: number,
  h: number,
): number {
  let x = 0;
  for (const pod of row) {
    const w = share(pod);
    into.push({ pod, x, y, w, h });
    x += w;
  }
  return y + h;
}

/** Return the box at a point, in fractions of the bay. */
export function boxAt(boxes: readonly PodBox[], x: number, y: number): PodBox | null {
  return (
    boxes.find((one) => x >= one.x && x < one.x + one.w && y >= one.y && y < one.y + one.h) ?? null
  );
}
