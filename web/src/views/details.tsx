/** Details of the selection: a node, a pod, a group, a queue, or equivalent pending pods. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useApp } from "../app";
import { describeAttachLimit, nodeStatus } from "../model/descriptions";
import { age, cpu, memory, percent, plural, price, stateText } from "../model/formats";
import type { Selection } from "../model/route";
import type { Group, Node, PendingPods, Pod, Queue } from "../model/rows";
import { natural } from "../model/search";
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
    node: () => ifFound(nodes.get(id), (node) => <NodeDetails node={node} />),
    pod: () => ifFound(pods.get(id), (pod) => <PodDetails pod={pod} />),
    group: () => ifFound(groups.get(id), (group) => <GroupDetails group={group} />),
    queue: () => ifFound(queues.get(id), (queue) => <QueueDetails queue={queue} />),
    pending: () => ifFound(waiting.get(id), (row) => <PendingDetails row={row} />),
  };
  const gone =
    kind === "pending"
      ? "These pods are no longer pending."
      : `${kind} ${id} does not exist at this time: it was deleted, or not created yet.`;
  return <>{parts[kind]() ?? <Empty>{gone}</Empty>}</>;
}

function ifFound<T>(row: T | undefined, show: (row: T) => ComponentChildren): ComponentChildren {
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
  const usage = store.usage.of(node.id);
  const pods = [...usage.pods.values()].sort((a, b) => natural(a.id, b.id));
  return (
    <>
      <Title kind={node.upcoming ? "upcoming node" : "node"} name={node.id} />
      {node.note && <p class="note">{node.note}</p>}
      <Facts
        facts={[
          [
            "State",
            <span class={node.ready === "True" || node.upcoming ? "" : "warn"}>
              {nodeStatus(node)}
            </span>,
          ],
          ["Group", node.group && <Ref kind="group" id={node.group} />],
          ["Zone", node.zone],
          ["Type", node.type],
          [
            "CPU",
            <Bar
              part={usage.cpu}
              whole={node.cpu}
              text={`${cpu(usage.cpu)} of ${cpu(node.cpu)}`}
            />,
          ],
          [
            "Memory",
            <Bar
              part={usage.memory}
              whole={node.memory}
              text={`${memory(usage.memory)} of ${memory(node.memory)}`}
            />,
          ],
          ["Pods", `${pods.length}${node.podsMax ? ` of ${node.podsMax}` : ""}`],
          [
            "Taints",
            node.taints.length ? node.taints.map((taint) => <code key={taint}>{taint}</code>) : "",
          ],
        ]}
      />
      <AttachLimits node={node} />
      <h3>{node.upcoming ? "Assigned pods" : "Pods"}</h3>
      <PodList pods={pods} by={node} />
    </>
  );
}

function AttachLimits({ node }: { node: Node }) {
  const limits = useApp().store.attachLimits(node.id);
  if (limits.length === 0 && node.missing.length === 0) return null;
  return (
    <>
      <h3>Attach slots</h3>
      <ul class="lines">
        {limits.map((row) => (
          <li key={row.id} class={row.over ? "warn" : ""}>
            <Bar
              part={row.used}
              whole={row.limit}
              text={describeAttachLimit(row)}
              over={row.over}
            />
            {row.origin && <small>limit from: {row.origin}</small>}
          </li>
        ))}
        {node.missing.map((driver) => (
          <li key={driver} class="warn">
            ▲ Pods need the CSI driver {driver}, which is missing on this node.
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
              {stateText(pod.state)} · {cpu(pod.cpu)}
              {by ? ` (${percent(pod.cpu, by.cpu)})` : ""} · {memory(pod.memory)}
              {pod.volumes > 0 && ` · ${plural(pod.volumes, "volume")}`}
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
          [
            "State",
            <span class={pod.state === "stuck" ? "warn" : ""}>{stateText(pod.state)}</span>,
          ],
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
      <Title kind="node group" name={group.title || group.id} />
      <Facts
        facts={[
          ["Size", `${group.size}${group.target === group.size ? "" : ` → ${group.target}`}`],
          ["Size limits", group.max === null ? "" : `${group.min ?? 0} to ${group.max}`],
          ["Upcoming", group.upcoming || ""],
          ["Price", price(group.price)],
          ["Known from", group.source],
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
                {nodeStatus(node)} · CPU {percent(store.usage.of(node.id).cpu, node.cpu)}
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
  const pending = pods.filter((pod) => pod.node === "");
  return (
    <>
      <Title kind="queue" name={queue.title || queue.id} />
      {queue.problem && <p class="warn">▲ {queue.problem}</p>}
      <Facts
        facts={[
          ["State", queue.state],
          ["Parent", queue.parent && <Ref kind="queue" id={queue.parent} />],
          ["Weight", queue.weight],
          ["Pending pods", queue.waiting || ""],
          ["Next group", queue.next],
          ["Reason", queue.why],
        ]}
      />
      <Shares queue={queue} />
      {pending.length > 0 && <h3>Pending pods</h3>}
      <PodList pods={pending} />
      {pods.length > pending.length && <h3>Scheduled pods</h3>}
      <PodList pods={pods.filter((pod) => pod.node !== "")} />
    </>
  );
}

function PendingDetails({ row }: { row: PendingPods }) {
  const { store } = useApp();
  return (
    <>
      <Title kind={plural(row.count, "pod")} name={row.title || row.sample} />
      <p class="lead">{CAUSES[row.cause] ?? CAUSES.other}</p>
      <Facts
        facts={[
          ["Pending for", age(row.since, store.time.value)],
          ["Driver", row.driver],
        ]}
      />
      <ExplanationOf pod={row.sample} />
      <details>
        <summary>{plural(row.count, "equivalent pod")}</summary>
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
