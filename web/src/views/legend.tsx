/** The meaning of colours and marks. */
import { useApp } from "../app";

const STATES = [
  ["running", "running"],
  ["starting", "starting (dots)"],
  ["stuck", "stuck (hatched)"],
  ["leaving", "terminating (hollow)"],
] as const;

export function Legend() {
  const byState = useApp().route.value.colour === "state";
  return (
    <details class="legend">
      <summary>Legend</summary>
      {byState && (
        <ul>
          {STATES.map(([state, text]) => (
            <li key={state}>
              <i class={`swatch ${state}`} />
              {text}
            </li>
          ))}
        </ul>
      )}
      <ul>
        <li>
          <i class="swatch upcoming" />
          dashed: an upcoming node, and the pods that triggered the scale-up
        </li>
        <li>
          <i class="swatch slots" />
          squares at the right: attach slots of each CSI driver, in use and free
        </li>
        <li>node: ● ready, ✕ not ready, ■ unknown, ○ upcoming</li>
        <li>▲ more volumes than the attach limit</li>
        <li>⚑ taint; crossed out: cordoned</li>
        <li>coloured frame: not ready, CSI driver missing or pod stuck</li>
        <li>
          zoomed out: usage from 0 % <i class="swatch fullness" /> to 100 %; a marked corner is a
          problem
        </li>
      </ul>
    </details>
  );
}
