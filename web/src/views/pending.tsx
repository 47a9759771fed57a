/** Pending pods by cause and equivalence class, each with a link to its explanation. */
import { useApp } from "../app";
import type { Waiting } from "../model/rows";
import { age, many } from "../model/words";
import { Empty } from "./parts";
import { walk } from "./table";

/** The causes, ordered by what can be done about them, and their explanations. */
export const CAUSES: Record<string, string> = {
  queue: "Not admitted by their queue yet",
  gate: "Scheduling gates",
  resources: "No node has enough free resources",
  volumes: "No node has a free attach slot, or the CSI driver is missing",
  affinity: "No node matches affinity, topology spread or node selector",
  taints: "All matching nodes are tainted or cordoned",
  devices: "Devices must be allocated first",
  scheduler: "Not yet handled by a scheduler",
  other: "Other causes",
};

export function PendingView() {
  const app = useApp();
  app.store.versions.waiting.value;
  const query = app.place.value.query.toLowerCase();
  const rows = [...app.store.tables.waiting.values()].filter((row) => matches(row, query));
  if (rows.length === 0) {
    return (
      <Empty>{query ? "No pending pods match." : "No pending pods: every pod has a node."}</Empty>
    );
  }
  const causes = Object.keys(CAUSES);
  const known = (cause: string) => (causes.includes(cause) ? cause : "other");
  return (
    <section class="pending-pods" aria-label="Pending pods">
      {causes.map((cause) => {
        const mine = rows.filter((row) => known(row.cause) === cause);
        return mine.length ? <Cause key={cause} cause={cause} rows={mine} /> : null;
      })}
    </section>
  );
}

function matches(row: Waiting, query: string): boolean {
  if (query === "") return true;
  return [row.title, row.message, row.driver, ...row.pods].some((text) =>
    text.toLowerCase().includes(query),
  );
}

function Cause({ cause, rows }: { cause: string; rows: Waiting[] }) {
  const count = rows.reduce((sum, row) => sum + row.count, 0);
  const sorted = rows.sort((a, b) => b.count - a.count || a.since.localeCompare(b.since));
  return (
    <section class={`cause ${cause}`} aria-labelledby={`cause-${cause}`}>
      <h2 id={`cause-${cause}`}>
        <span class="badge">{cause}</span> {CAUSES[cause]} <small>{many(count, "pod")}</small>
      </h2>
      <ul class="crates">
        {sorted.map((row) => (
          <Crate key={row.id} row={row} />
        ))}
      </ul>
    </section>
  );
}

/** Equivalent pods as one box; a click or Enter opens their explanation. */
function Crate({ row }: { row: Waiting }) {
  const app = useApp();
  const { selection } = app.place.value;
  const chosen = selection?.kind === "waiting" && selection.id === row.id;
  return (
    <li onKeyDown={(event) => arrow(event)}>
      <a
        class="crate"
        href={app.link({ selection: { kind: "waiting", id: row.id } })}
        aria-current={chosen ? "true" : undefined}
      >
        <b>
          {row.title || row.sample} <span class="times">×{row.count}</span>
        </b>
        <span class="message">{row.message}</span>
        <small>
          {row.driver && <>driver {row.driver} · </>}
          pending for {age(row.since, app.store.time.value)}
        </small>
      </a>
    </li>
  );
}

function arrow(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  if (!walk(event)) return;
  event.preventDefault();
  const at = event.currentTarget;
  const to = event.key === "ArrowDown" ? at.nextElementSibling : at.previousElementSibling;
  to?.querySelector("a")?.focus();
}
