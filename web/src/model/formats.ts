/** Formats of numbers, times and states. */

const BINARY = ["B", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** Millicores as Kubernetes writes them: 250m, 4, 1.5. */
export function cpu(millicores: number): string {
  if (millicores < 1000) return `${Math.round(millicores)}m`;
  return trim(millicores / 1000);
}

/** Bytes in the largest binary unit: 512Mi, 15.6Gi. */
export function memory(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < BINARY.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${trim(value)}${BINARY[unit]}`;
}

export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return "–";
  return `${Math.round((100 * part) / whole)} %`;
}

/** The field's words for states of pods that the server names otherwise. */
const STATES: Record<string, string> = { waiting: "pending", leaving: "terminating" };

/** Return the state of a pod as it is shown. */
export function stateText(state: string): string {
  return STATES[state] ?? state;
}

/** Return a number with its noun: "1 pod", "3 pods". */
export function plural(count: number, noun: string): string {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function number(value: number): string {
  return value.toLocaleString("en-US");
}

/** Return a price per hour, signed if it is a change. */
export function price(value: number | string | null, change = false): string {
  if (value === null) return "";
  if (typeof value === "string") return value;
  return `${change && value > 0 ? "+" : ""}${value.toFixed(Math.abs(value) < 1 ? 3 : 2)} an hour`;
}

/** 42 s, 3 min, 2 h 5 min, 3 d 4 h. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

/** Return the time from `since` to `now`; empty if either is invalid. */
export function age(since: string, now: string): string {
  const seconds = (Date.parse(now) - Date.parse(since)) / 1000;
  return Number.isFinite(seconds) ? duration(seconds) : "";
}

/** Return the time of day in UTC. */
export function clock(time: string): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? time : at.toISOString().slice(11, 19);
}

/** Seconds from the beginning as 0:07, 12:30, 3:05:00. */
export function position(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const two = (n: number) => String(n).padStart(2, "0");
  const rest = `${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return s >= 3600 ? `${Math.floor(s / 3600)}:${rest}` : rest.replace(/^0/, "");
}

function trim(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Math.round(value * 10) / 10);
}
