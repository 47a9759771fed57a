/** How long to wait before trying again: twice as long each time, up to a bound, a little apart. */

const FIRST = 500;
const LONGEST = 15_000;

export function backOff(attempt: number, random: () => number = Math.random): number {
  const whole = Math.min(LONGEST, FIRST * 2 ** Math.max(0, attempt - 1));
  return Math.round(whole * (0.75 + 0.5 * random()));
}
