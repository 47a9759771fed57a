/** Kubernetes quantities as numbers, to draw bars. */

const UNITS: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** Return a quantity as a number; 0 if it is invalid. */
export function amount(text: string | number | undefined): number {
  if (typeof text === "number") return text;
  const match = /^([0-9.]+(?:e[+-]?[0-9]+)?)([a-zA-Z]*)$/.exec(text ?? "");
  const value = Number(match?.[1]) * (UNITS[match?.[2] ?? ""] ?? Number.NaN);
  return Number.isFinite(value) ? value : 0;
}
