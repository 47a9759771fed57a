/**
 * How pods are stowed in a hold: areas to scale, the largest at the bottom. A pod that is high enough
 * gets a tier of its own; smaller ones share a tier side by side. Pods that ask for nothing lie on the
 * deck, the thin tier at the top, which is the one thing not to scale.
 */
import type { Berth } from "../model/berths";
import type { Measure } from "../model/place";
import type { Pod } from "../model/rows";
import { natural } from "../model/search";

export interface Slab {
  pod: Pod;
  /** Within the hold, from its lower left corner; both run from 0 to 1. */
  x: number;
  y: number;
  w: number;
  h: number;
}

/** A tier is at least this part of the hold, unless less is left. */
const TIER = 0.06;
const DECK = 0.025;

export function stow(berth: Berth, capacity: number, by: Measure): Slab[] {
  const all = [...berth.pods.values()].filter((pod) => pod.state !== "done");
  const sized = all.filter((pod) => pod[by] > 0);
  sized.sort((a, b) => b[by] - a[by] || natural(a.id, b.id));
  const total = sized.reduce((sum, pod) => sum + pod[by], 0);
  const scale = 1 / Math.max(capacity, total, 1);
  const slabs: Slab[] = [];
  let height = 0;
  for (const tier of tiers(sized, by, TIER / scale)) {
    const sum = tier.reduce((of, pod) => of + pod[by], 0);
    height = side(slabs, tier, (pod) => pod[by] / sum, height, sum * scale);
  }
  const free = all.filter((pod) => !(pod[by] > 0)).sort((a, b) => natural(a.id, b.id));
  side(slabs, free, () => 1 / free.length, Math.min(height, 1 - DECK), DECK);
  return slabs;
}

/** Pods from the largest down, as many in a tier as it takes to make it high enough. */
function tiers(pods: Pod[], by: Measure, enough: number): Pod[][] {
  const made: Pod[][] = [];
  let tier: Pod[] = [];
  let sum = 0;
  for (const pod of pods) {
    tier.push(pod);
    sum += pod[by];
    if (sum >= enough) {
      made.push(tier);
      tier = [];
      sum = 0;
    }
  }
  if (tier.length) made.push(tier);
  return made;
}

function side(
  into: Slab[],
  tier: Pod[],
  share: (pod: Pod) => number,
  y: number,
  h: number,
): number {
  let x = 0;
  for (const pod of tier) {
    const w = share(pod);
    into.push({ pod, x, y, w, h });
    x += w;
  }
  return y + h;
}

/** The slab at a point of the hold, as its own fractions say it. */
export function slabAt(slabs: readonly Slab[], x: number, y: number): Slab | null {
  return (
    slabs.find((one) => x >= one.x && x < one.x + one.w && y >= one.y && y < one.y + one.h) ?? null
  );
}
