/** The nodes as a table: the same data as the bays, also for screen readers. */
import { useState } from "preact/hooks";
import { type App, useApp } from "../app";
import { describeAttachLimit, nodeStatus } from "../model/descriptions";
import { cpu, memory, percent, plural } from "../model/formats";
import type { Node } from "../model/rows";
import { matchingNodes, natural } from "../model/search";
import { Bar, Empty, Ref } from "./parts";
import { type Column, Table } from "./table";

const PAGE = 100;

export function NodesView() {
  const app = useApp();
  const [order, setOrder] = useState("name");
  const [page, setPage] = useState(0);
  for (const table of ["nodes", "pods", "rails"] as const) app.store.versions[table].value;
  const nodes = sorted(app, order);
  const pages = Math.max(1, Math.ceil(nodes.length / PAGE));
  const at = Math.min(page, pages - 1);
  const shown = nodes.slice(at * PAGE, (at + 1) * PAGE);
  if (nodes.length === 0) return <Empty>No nodes{app.route.value.query ? " match" : ""}.</Empty>;
  return (
    <section aria-label="Nodes">
      <div class="tools">
        <span>{plural(nodes.length, "node")}</span>
        {pages > 1 && (
          <span class="buttons">
            <button type="button" disabled={at === 0} onClick={() => setPage(at - 1)}>
              Previous
            </button>
            <span>
              page {at + 1} of {pages}
            </span>
            <button type="button" disabled={at === pages - 1} onClick={() => setPage(at + 1)}>
              Next
            </button>
          </span>
        )}
      </div>
      <Table
        label="Nodes"
        columns={columns(app)}
        rows={shown}
        id={(node) => node.id}
        order={order}
        onOrder={setOrder}
        chosen={app.route.value.selection?.kind === "node" ? app.route.value.selection.id : null}
        onOpen={(node) => app.select({ kind: "node", id: node.id })}
      />
    </section>
  );
}

function sorted(app: App, order: string): Node[] {
  const { store } = app;
  const matching = matchingNodes(store, app.route.value.query);
  const nodes = [...store.tables.nodes.values()].filter(
    (node) => !matching || matching.has(node.id),
  );
  const full = (node: Node, by: "cpu" | "memory") => store.usage.of(node.id)[by] / (node[by] || 1);
  const slots = (node: Node) =>
    Math.max(
      -1,
      ...store.attachLimits(node.id).map((row) => row.used / Math.max(1, row.limit ?? 1e9)),
    );
  const keys: Record<string, (a: Node, b: Node) => number> = {
    name: (a, b) => natural(a.id, b.id),
    state: (a, b) => natural(nodeStatus(a), nodeStatus(b)),
    zone: (a, b) => natural(a.zone, b.zone),
    group: (a, b) => natural(a.group, b.group),
    CPU: (a, b) => full(b, "cpu") - full(a, "cpu"),
    memory: (a, b) => full(b, "memory") - full(a, "memory"),
    pods: (a, b) => store.usage.of(b.id).pods.size - store.usage.of(a.id).pods.size,
    volumes: (a, b) => slots(b) - slots(a),
  };
  const by = keys[order];
  return nodes.sort((a, b) => by?.(a, b) || natural(a.id, b.id));
}

function columns({ store }: App): Column<Node>[] {
  const usage = (node: Node) => store.usage.of(node.id);
  return [
    { name: "name", cell: (node) => <Ref kind="node" id={node.id} />, head: true },
    {
      name: "state",
      cell: (node) => <span class={node.ready === "True" ? "" : "warn"}>{nodeStatus(node)}</span>,
    },
    { name: "zone", cell: (node) => node.zone },
    { name: "group", cell: (node) => <Ref kind="group" id={node.group} /> },
    {
      name: "CPU",
      cell: (node) => (
        <Bar
          part={usage(node).cpu}
          whole={node.cpu}
          text={`${percent(usage(node).cpu, node.cpu)} of ${cpu(node.cpu)}`}
        />
      ),
    },
    {
      name: "memory",
      cell: (node) => (
        <Bar
          part={usage(node).memory}
          whole={node.memory}
          text={`${percent(usage(node).memory, node.memory)} of ${memory(node.memory)}`}
        />
      ),
    },
    { name: "pods", cell: (node) => `${usage(node).pods.size} of ${node.podsMax || "–"}` },
    {
      name: "volumes",
      cell: (node) => (
        <>
          {store.attachLimits(node.id).map((row) => (
            <div key={row.id} class={row.over ? "warn" : ""}>
              {describeAttachLimit(row)}
            </div>
          ))}
          {node.missing.map((driver) => (
            <div key={driver} class="warn">
              CSI driver {driver} is missing
            </div>
          ))}
        </>
      ),
    },
  ];
}
