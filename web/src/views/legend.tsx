/** What the colours and marks of the drawing mean. */
import { useApp } from "../app";

const STATES = [
  ["running", "running"],
  ["starting", "starting (dots)"],
  ["stuck", "stuck (hatched)"],
  ["leaving", "leaving (hollow)"],
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
          dashed: a node on its way, with the pods it is meant for
        </li>
        <li>
          <i class="swatch rail" />
          places at the right: volumes attached, free below the limit
        </li>
        <li>● ready, ✕ not ready, ■ not heard from, ○ upcoming</li>
        <li>crossed out: cordoned; ▲ over its limit; ⚑ a taint</li>
        <li>
          far away, empty <i class="swatch fullness" /> full; a corner marks trouble
        </li>
      </ul>
    </details>
  );
}
