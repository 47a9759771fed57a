/** Pending pods by cause and equivalence class, each with a link to its explanation. */
import { useApp } from "../app";
import { age, plural } from "../model/formats";
import type { PendingPods } from "../model/rows";
import { Empty } from "./parts";
import { moveFocus } from "./table";

/** The causes in the order of the page, and their headings. */
export const CAUSES: Record<string, string> = {
  queue: "Not admitted by their queue yet",
  gate: "Waiting for a scheduling gate to be removed",
  resources: "No node has enough free resources",
  volumes: "No node fits their volumes: claims, attach limits, CSI drivers or topology",
  affinity: "No node matches affinity or node selector",
  spread: "No node satisfies the topology spread constraints",
  taints: "All matching nodes are cordoned, or have taints that are not tolerated",
  ports: "The host port is in use on all matching nodes",
  devices: "Devices must be allocated first",
  nodes: "There are no nodes",
  upcoming: "They fit an upcoming node",
  scheduler: "They fit a node, and their scheduler has not scheduled them yet",
  other: "Other causes, or not computed yet",
};

export function PendingView() {
  const app = useApp();
  app.store.versions.waiting.value;
  const query = app.route.value.query.toLowerCase();
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

function matches(row: PendingPods, query: string): boolean {
  if (query === "") return true;
  return [row.title, row.message, row.driver, ...row.pods].some((text) =>
    text.toLowerCase().includes(query),
  );
}

function Cause({ cause, rows }: { cause: string; rows: PendingPods[] }) {
  const count = rows.reduce((sum, row) => sum + row.count, 0);
  const sorted = rows.sort((a, b) => b.count - a.count || a.since.localeCompare(b.since));
  return (
    <section class={`cause ${cause}`} aria-labelledby={`cause-${cause}`}>
      <h2 id={`cause-${cause}`}>
        <span class="badge">{cause}</span> {CAUSES[cause]} <small>{plural(count, "pod")}</small>
      </h2>
      <ul class="pod-classes">
        {sorted.map((row) => (
          <PodClassLink key={row.id} row={row} />
        ))}
      </ul>
    </section>
  );
}

/** Equivalent pods as one link, which opens their explanation. */
function PodClassLink({ row }: { row: PendingPods }) {
  const app = useApp();
  const { selection } = app.route.value;
  const waited = age(row.since, app.store.time.value);
  const chosen = selection?.kind === "pending" && selection.id === row.id;
  return (
    <li onKeyDown={(event) => arrow(event)}>
      <a
        class="pod-class"
        href={app.link({ selection: { kind: "pending", id: row.id } })}
        aria-current={chosen ? "true" : undefined}
      >
        <b>
          {row.title || row.sample} <span class="times">×{row.count}</span>
        </b>
        <span class="message">{row.message}</span>
        <small>
          {[row.driver && `CSI driver ${row.driver}`, waited && `pending for ${waited}`]
            .filter(Boolean)
            .join(" · ")}
        </small>
      </a>
    </li>
  );
}

function arrow(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  if (!moveFocus(event)) return;
  event.preventDefault();
  const at = event.currentTarget;
  const to = event.key === "ArrowDown" ? at.nextElementSibling : at.previousElementSibling;
  to?.querySelector("a")?.focus();
}
