/** Queues as a tree: quota, allocated resources, pending pods, and the next group with its reason. */
import { type App, useApp } from "../app";
import { amount } from "../model/amounts";
import { plural } from "../model/formats";
import type { Amounts, Queue } from "../model/rows";
import { natural } from "../model/search";
import { Bar, Empty } from "./parts";

export function QueuesView() {
  const app = useApp();
  app.store.versions.queues.value;
  const queues = [...app.store.tables.queues.values()];
  if (queues.length === 0) return <Empty>No queues: the cluster has no Queue objects.</Empty>;
  const known = new Set(queues.map((queue) => queue.id));
  const roots = queues.filter((queue) => !known.has(queue.parent) || queue.parent === queue.id);
  return (
    <section class="queues" aria-label="Queues">
      <Branch app={app} queues={queues} of={roots} depth={1} />
    </section>
  );
}

const DEEPEST = 32;

function Branch(props: { app: App; queues: Queue[]; of: Queue[]; depth: number }) {
  const { app, queues, of, depth } = props;
  return (
    <ul class={depth === 1 ? "tree" : ""}>
      {of
        .sort((a, b) => natural(a.id, b.id))
        .map((queue) => {
          const under = queues.filter((one) => one.parent === queue.id && one.id !== queue.id);
          return (
            <li key={queue.id}>
              <QueueBox queue={queue} />
              {under.length > 0 && depth < DEEPEST && (
                <Branch app={app} queues={queues} of={under} depth={depth + 1} />
              )}
            </li>
          );
        })}
    </ul>
  );
}

function QueueBox({ queue }: { queue: Queue }) {
  const app = useApp();
  const { selection } = app.route.value;
  const chosen = selection?.kind === "queue" && selection.id === queue.id;
  const facts = [
    queue.state,
    queue.weight === null ? "" : `weight ${queue.weight}`,
    queue.share === null ? "" : `share ${Math.round(queue.share * 100) / 100}`,
  ].filter(Boolean);
  return (
    <article class={`queue${chosen ? " chosen" : ""}`}>
      <h3>
        <a href={app.link({ selection: { kind: "queue", id: queue.id } })}>
          {queue.title || queue.id}
        </a>
        <small>{facts.join(" · ")}</small>
        {queue.waiting > 0 && <b class="count">{plural(queue.waiting, "pending pod")}</b>}
      </h3>
      <Shares queue={queue} />
      {queue.next && (
        <p class="next">
          <b>Next:</b> {queue.next}
          {queue.why && <span class="why"> {queue.why}</span>}
        </p>
      )}
      {!queue.next && queue.waiting > 0 && queue.why && <p class="next">{queue.why}</p>}
      {queue.problem && <p class="warn">▲ {queue.problem}</p>}
    </article>
  );
}

/** A bar for each resource: allocated and reserved, of the quota (or of the deserved amount). */
export function Shares({ queue }: { queue: Queue }) {
  const names = resources(
    queue.quota,
    queue.allocated,
    queue.reserved,
    queue.requested,
    queue.deserved,
  );
  return (
    <table class="shares" aria-label={`Resources of queue ${queue.title || queue.id}`}>
      <tbody>
        {names.map((name) => (
          <Share key={name} queue={queue} name={name} />
        ))}
      </tbody>
    </table>
  );
}

function Share({ queue, name }: { queue: Queue; name: string }) {
  const allocated = amount(queue.allocated[name]);
  const reserved = amount(queue.reserved[name]);
  const limit = queue.quota[name] ?? queue.deserved[name];
  const whole = limit === undefined ? null : amount(limit);
  const text = [
    `${queue.allocated[name] ?? 0}`,
    reserved > 0 ? `+ ${queue.reserved[name]} reserved` : "",
    limit === undefined ? "(no quota)" : `of ${limit}`,
  ].filter(Boolean);
  const more = (label: string, of: Amounts) =>
    of[name] === undefined ? "" : `${label} ${of[name]}`;
  const small = [more("deserved", queue.deserved), more("guaranteed", queue.guaranteed)];
  if (amount(queue.requested[name]) > 0) small.push(more("requested", queue.requested));
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        <Bar
          part={allocated}
          also={reserved}
          whole={whole}
          text={text.join(" ")}
          over={whole !== null && allocated > whole}
        />
      </td>
      <td class="small">{small.filter(Boolean).join(", ")}</td>
    </tr>
  );
}

export function resources(...of: Amounts[]): string[] {
  const names = new Set(of.flatMap((amounts) => Object.keys(amounts)));
  const first = ["cpu", "memory", "pods"];
  const rank = (name: string) => (first.includes(name) ? first.indexOf(name) : first.length);
  return [...names].sort((a, b) => rank(a) - rank(b) || natural(a, b));
}
