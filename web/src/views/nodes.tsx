/** The nodes as a table: the same as the bays for those who would rather read, or cannot see them. */
import { useState } from "preact/hooks";
import { type App, useApp } from "../app";
import type { Node } from "../model/rows";
import { matchingNodes, natural } from "../model/search";
import { condition, tellRail } from "../model/telling";
import { cpu, many, memory, percent } from "../model/words";
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
  if (nodes.length === 0) return <Empty>No nodes{app.place.value.query ? " match" : ""}.</Empty>;
  return (
    <section aria-label="Nodes">
      <div class="tools">
        <span>{many(nodes.length, "node")}</span>
        {pages > 1 && (
          <span class="buttons">
            <button type="button" disabled={at === 0} onClick={() => setPage(at - 1)}>
              Before
            </button>
            <span>
              {at + 1} of {pages}
            </span>
            <button type="button" disabled={at === pages - 1} onClick={() => setPage(at + 1)}>
              After
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
        chosen={app.place.value.selection?.kind === "node" ? app.place.value.selection.id : null}
        onOpen={(node) => app.select({ kind: "node", id: node.id })}
      />
    </section>
  );
}

function sorted(app: App, order: string): Node[] {
  const { store } = app;
  const matching = matchingNodes(store, app.place.value.query);
  const nodes = [...store.tables.nodes.values()].filter(
    (node) => !matching || matching.has(node.id),
  );
  const full = (node: Node, by: "cpu" | "memory") => store.berths.of(node.id)[by] / (node[by] || 1);
  const rails = (node: Node) =>
    Math.max(-1, ...store.rails(node.id).map((rail) => rail.used / Math.max(1, rail.limit ?? 1e9)));
  const keys: Record<string, (a: Node, b: Node) => number> = {
    name: (a, b) => natural(a.id, b.id),
    state: (a, b) => natural(condition(a), condition(b)),
    zone: (a, b) => natural(a.zone, b.zone),
    group: (a, b) => natural(a.group, b.group),
    CPU: (a, b) => full(b, "cpu") - full(a, "cpu"),
    memory: (a, b) => full(b, "memory") - full(a, "memory"),
    pods: (a, b) => store.berths.of(b.id).pods.size - store.berths.of(a.id).pods.size,
    volumes: (a, b) => rails(b) - rails(a),
  };
  const by = keys[order];
  return nodes.sort((a, b) => by?.(a, b) || natural(a.id, b.id));
}

function columns({ store }: App): Column<Node>[] {
  const berth = (node: Node) => store.berths.of(node.id);
  return [
    { name: "name", cell: (node) => <Ref kind="node" id={node.id} />, head: true },
    {
      name: "state",
      cell: (node) => <span class={node.ready === "True" ? "" : "warn"}>{condition(node)}</span>,
    },
    { name: "zone", cell: (node) => node.zone },
    { name: "group", cell: (node) => <Ref kind="group" id={node.group} /> },
    {
      name: "CPU",
      cell: (node) => (
        <Bar
          part={berth(node).cpu}
          whole={node.cpu}
          words={`${percent(berth(node).cpu, node.cpu)} of ${cpu(node.cpu)}`}
        />
      ),
    },
    {
      name: "memory",
      cell: (node) => (
        <Bar
          part={berth(node).memory}
          whole={node.memory}
          words={`${percent(berth(node).memory, node.memory)} of ${memory(node.memory)}`}
        />
      ),
    },
    { name: "pods", cell: (node) => `${berth(node).pods.size} of ${node.podsMax || "–"}` },
    {
      name: "volumes",
      cell: (node) => (
        <>
          {store.rails(node.id).map((rail) => (
            <div key={rail.id} class={rail.over ? "warn" : ""}>
              {tellRail(rail)}
            </div>
          ))}
          {node.missing.map((driver) => (
            <div key={driver} class="warn">
              {driver} is missing
            </div>
          ))}
        </>
      ),
    },
  ];
}
