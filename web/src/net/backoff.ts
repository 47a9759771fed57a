/** Exponential backoff with jitter, in milliseconds. */

const FIRST = 500;
const LONGEST = 15_000;

export function backOff(attempt: number, random: () => number = Math.random): number {
  const whole = Math.min(LONGEST, FIRST * 2 ** Math.max(0, attempt - 1));
  return Math.round(whole * (0.75 + 0.5 * random()));
}
