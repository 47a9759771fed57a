/** Details of the selection: a node, a pod, a group, a queue, or equivalent pending pods. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useApp } from "../app";
import type { Selection } from "../model/place";
import type { Group, Node, Pod, Queue, Waiting } from "../model/rows";
import { natural } from "../model/search";
import { condition, tellRail } from "../model/telling";
import { age, cpu, many, memory, percent, price } from "../model/words";
import { ExplanationOf } from "./explanation";
import { Bar, Empty, Facts, Ref } from "./parts";
import { CAUSES } from "./pending";
import { Shares } from "./queues";

const MOST_PODS = 200;

export function Details({ selection }: { selection: Selection }) {
  const app = useApp();
  const panel = useRef<HTMLElement>(null);
  const { kind, id } = selection;
  useEffect(() => panel.current?.scrollTo(0, 0), [kind, id]);
  return (
    <aside ref={panel} class="details" tabIndex={-1} aria-label={`Details of ${kind} ${id}`}>
      <button
        type="button"
        class="close"
        aria-label="Close the details"
        onClick={() => app.select(null)}
      >
        ✕
      </button>
      <Content {...selection} />
    </aside>
  );
}

function Content({ kind, id }: Selection) {
  const { store } = useApp();
  for (const table of ["nodes", "pods", "rails", "groups", "queues", "waiting"] as const) {
    store.versions[table].value;
  }
  const { nodes, pods, groups, queues, waiting } = store.tables;
  const parts: Record<Selection["kind"], () => ComponentChildren> = {
    node: () => some(nodes.get(id), (node) => <NodeDetails node={node} />),
    pod: () => some(pods.get(id), (pod) => <PodDetails pod={pod} />),
    group: () => some(groups.get(id), (group) => <GroupDetails group={group} />),
    queue: () => some(queues.get(id), (queue) => <QueueDetails queue={queue} />),
    waiting: () => some(waiting.get(id), (row) => <WaitingDetails row={row} />),
  };
  const gone =
    kind === "waiting"
      ? "These pods are no longer pending."
      : `${kind} ${id} does not exist any more.`;
  return <>{parts[kind]() ?? <Empty>{gone}</Empty>}</>;
}

function some<T>(row: T | undefined, show: (row: T) => ComponentChildren): ComponentChildren {
  return row === undefined ? null : show(row);
}

function Title({ kind, name }: { kind: string; name: string }) {
  return (
    <h2>
      <small>{kind}</small>
      {name}
    </h2>
  );
}

function NodeDetails({ node }: { node: Node }) {
  const { store } = useApp();
  const berth = store.berths.of(node.id);
  const pods = [...berth.pods.values()].sort((a, b) => natural(a.id, b.id));
  return (
    <>
      <Title kind={node.upcoming ? "upcoming node" : "node"} name={node.id} />
      {node.note && <p class="note">{node.note}</p>}
      <Facts
        facts={[
          [
            "State",
            <span class={node.ready === "True" || node.upcoming ? "" : "warn"}>
              {condition(node)}
            </span>,
          ],
          ["Group", node.group && <Ref kind="group" id={node.group} />],
          ["Zone", node.zone],
          ["Type", node.type],
          [
            "CPU",
            <Bar
              part={berth.cpu}
              whole={node.cpu}
              words={`${cpu(berth.cpu)} of ${cpu(node.cpu)}`}
            />,
          ],
          [
            "Memory",
            <Bar
              part={berth.memory}
              whole={node.memory}
              words={`${memory(berth.memory)} of ${memory(node.memory)}`}
            />,
          ],
          ["Pods", `${pods.length}${node.podsMax ? ` of ${node.podsMax}` : ""}`],
          [
            "Taints",
            node.taints.length ? node.taints.map((taint) => <code key={taint}>{taint}</code>) : "",
          ],
        ]}
      />
      <Rails node={node} />
      <h3>{node.upcoming ? "Pods for this node" : "Pods"}</h3>
      <PodList pods={pods} by={node} />
    </>
  );
}

function Rails({ node }: { node: Node }) {
  const rails = useApp().store.rails(node.id);
  if (rails.length === 0 && node.missing.length === 0) return null;
  return (
    <>
      <h3>Attach slots</h3>
      <ul class="lines">
        {rails.map((rail) => (
          <li key={rail.id} class={rail.over ? "warn" : ""}>
            <Bar part={rail.used} whole={rail.limit} words={tellRail(rail)} over={rail.over} />
            {rail.origin && <small>limit from: {rail.origin}</small>}
          </li>
        ))}
        {node.missing.map((driver) => (
          <li key={driver} class="warn">
            ▲ CSI driver {driver} is needed and missing on this node
          </li>
        ))}
      </ul>
    </>
  );
}

function PodList({ pods, by }: { pods: readonly Pod[]; by?: Node }) {
  const shown = pods.slice(0, MOST_PODS);
  return (
    <>
      <ul class="pods">
        {shown.map((pod) => (
          <li key={pod.id}>
            <i class={`swatch ${pod.state}`} aria-hidden="true" />
            <Ref kind="pod" id={pod.id} />
            <small>
              {pod.state} · {cpu(pod.cpu)}
              {by ? ` (${percent(pod.cpu, by.cpu)})` : ""} · {memory(pod.memory)}
              {pod.volumes > 0 && ` · ${many(pod.volumes, "volume")}`}
            </small>
          </li>
        ))}
      </ul>
      {pods.length > MOST_PODS && <p class="small">and {pods.length - MOST_PODS} more</p>}
    </>
  );
}

function PodDetails({ pod }: { pod: Pod }) {
  return (
    <>
      <Title kind="pod" name={pod.id} />
      <Facts
        facts={[
          ["State", <span class={pod.state === "stuck" ? "warn" : ""}>{pod.state}</span>],
          ["Phase", pod.phase],
          ["Node", pod.node && <Ref kind="node" id={pod.node} />],
          ["Upcoming node", pod.upcoming && <Ref kind="node" id={pod.upcoming} />],
          ["Owner", pod.owner],
          ["Queue", pod.queue && <Ref kind="queue" id={pod.queue} />],
          ["CPU", cpu(pod.cpu)],
          ["Memory", memory(pod.memory)],
          ["Volumes", pod.volumes || ""],
          ["Priority", pod.priority || ""],
        ]}
      />
      {pod.node === "" && <ExplanationOf pod={pod.id} />}
    </>
  );
}

function GroupDetails({ group }: { group: Group }) {
  const { store } = useApp();
  const nodes = [...store.tables.nodes.values()].filter((node) => node.group === group.id);
  return (
    <>
      <Title kind="group" name={group.title || group.id} />
      <Facts
        facts={[
          ["Size", `${group.size}${group.target === group.size ? "" : ` → ${group.target}`}`],
          ["Limits", group.max === null ? "" : `${group.min ?? 0} to ${group.max}`],
          ["Upcoming", group.upcoming || ""],
          ["Price", price(group.price)],
          ["Source", group.source],
        ]}
      />
      <h3>Nodes</h3>
      <ul class="pods">
        {nodes
          .sort((a, b) => natural(a.id, b.id))
          .slice(0, MOST_PODS)
          .map((node) => (
            <li key={node.id}>
              <Ref kind="node" id={node.id} />
              <small>
                {condition(node)} · CPU {percent(store.berths.of(node.id).cpu, node.cpu)}
              </small>
            </li>
          ))}
      </ul>
    </>
  );
}

function QueueDetails({ queue }: { queue: Queue }) {
  const { store } = useApp();
  const pods = [...store.tables.pods.values()].filter((pod) => pod.queue === queue.id);
  const waiting = pods.filter((pod) => pod.node === "");
  return (
    <>
      <Title kind="queue" name={queue.title || queue.id} />
      {queue.problem && <p class="warn">▲ {queue.problem}</p>}
      <Facts
        facts={[
          ["State", queue.state],
          ["Parent", queue.parent && <Ref kind="queue" id={queue.parent} />],
          ["Weight", queue.weight],
          ["Pending", queue.waiting || ""],
          ["Next", queue.next],
          ["Reason", queue.why],
        ]}
      />
      <Shares queue={queue} />
      {waiting.length > 0 && <h3>Pending</h3>}
      <PodList pods={waiting} />
      {pods.length > waiting.length && <h3>Running</h3>}
      <PodList pods={pods.filter((pod) => pod.node !== "")} />
    </>
  );
}

function WaitingDetails({ row }: { row: Waiting }) {
  const { store } = useApp();
  return (
    <>
      <Title kind={many(row.count, "pod")} name={row.title || row.sample} />
      <p class="lead">{CAUSES[row.cause] ?? CAUSES.other}</p>
      <Facts
        facts={[
          ["Pending for", age(row.since, store.time.value)],
          ["Driver", row.driver],
        ]}
      />
      <ExplanationOf pod={row.sample} />
      <details>
        <summary>{many(row.count, "equivalent pod")}</summary>
        <ul class="pods">
          {row.pods.map((id) => (
            <li key={id}>
              <Ref kind="pod" id={id} />
            </li>
          ))}
        </ul>
      </details>
    </>
  );
}
