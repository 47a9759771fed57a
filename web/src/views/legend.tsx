/** The meaning of colours and marks. */
import { useApp } from "../app";

const STATES = [
  ["running", "running"],
  ["starting", "starting (dots)"],
  ["stuck", "stuck (hatched)"],
  ["leaving", "terminating (hollow)"],
] as const;

export function Legend() {
  const byState = useApp().place.value.colour === "state";
  return (
    <details class="legend">
      <summary>Legend</summary>
      {byState && (
        <ul>
          {STATES.map(([state, words]) => (
            <li key={state}>
              <i class={`swatch ${state}`} />
              {words}
            </li>
          ))}
        </ul>
      )}
      <ul>
        <li>
          <i class="swatch ghost" />
          dashed: an upcoming node, with the pods that triggered it
        </li>
        <li>
          <i class="swatch rail" />
          slots at the right: attached volumes, free slots up to the limit
        </li>
        <li>● ready, ✕ not ready, ■ unknown, ○ upcoming</li>
        <li>crossed out: cordoned; ▲ over its limit; ⚑ a taint</li>
        <li>
          zoomed out: empty <i class="swatch fullness" /> full; a corner marks a problem
        </li>
      </ul>
    </details>
  );
}
