/** The view of the bays: the canvas with its keys, the tooltip and the legend. */
import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { type App, useApp } from "../app";
import { Board, type Hit } from "../bays/board";
import { neighbour } from "../bays/layout";
import { listenToPointers } from "../bays/pointer";
import { describeAttachLimit, describeNode, describePod } from "../model/descriptions";
import { COLOURS, MEASURES } from "../model/route";
import { Legend } from "./legend";
import { Choice } from "./parts";

const STEP = 80;
const NEAR = 120;

interface Tip {
  x: number;
  y: number;
  text: string;
}

export function BaysView() {
  const app = useApp();
  const route = app.route.value;
  const [tip, setTip] = useState<Tip | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const board = useRef<Board | null>(null);
  useEffect(() => {
    if (canvas.current === null) return;
    const { made, stop } = open(app, canvas.current, setTip);
    board.current = made;
    return stop;
  }, [app]);
  return (
    <section class="bays" aria-label="Bays">
      <div class="tools">
        <Choice
          label="Size by"
          choices={MEASURES}
          value={route.by}
          onChoose={(by) => app.go({ by })}
        />
        <Choice
          label="Colour by"
          choices={COLOURS}
          value={route.colour}
          onChoose={(colour) => app.go({ colour })}
        />
      </div>
      <div class="drawing">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="bay plan"
          aria-label="Nodes drawn as bays. Arrow keys select a bay, Enter opens its details, plus and minus zoom, 0 shows all. The Nodes view has the same data as a table."
          onKeyDown={(event) => {
            if (board.current && key(app, board.current, event)) event.preventDefault();
          }}
        >
          The nodes are drawn here as bays. The Nodes view has the same data as a table.
        </canvas>
        {tip && <Tooltip {...tip} />}
        <div class="corner">
          <Legend />
          <span class="buttons">
            <button
              type="button"
              aria-label="Zoom out"
              onClick={() => board.current?.zoom(1 / 1.5)}
            >
              −
            </button>
            <button type="button" aria-label="Zoom in" onClick={() => board.current?.zoom(1.5)}>
              +
            </button>
            <button type="button" onClick={() => board.current?.fit()}>
              Fit
            </button>
          </span>
        </div>
      </div>
    </section>
  );
}

function Tooltip({ x, y, text }: Tip) {
  const style = { "--x": `${x}px`, "--y": `${y}px` } as Record<string, string>;
  return (
    <div class={`tip${x > innerWidth / 2 ? " left" : ""}`} style={style} aria-hidden="true">
      {text.split(", ").map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}

/** Create the board, and update it with the store, the route, the theme and the window. */
function open(app: App, canvas: HTMLCanvasElement, setTip: (tip: Tip | null) => void) {
  const board = new Board(canvas, app.store);
  let timer: ReturnType<typeof setTimeout> | undefined;
  board.onLook = (look) => {
    clearTimeout(timer);
    timer = setTimeout(() => app.go({ look }, false), 250);
  };
  const box = canvas.parentElement as HTMLElement;
  const watch = new ResizeObserver(() => board.resize(box.clientWidth, box.clientHeight));
  watch.observe(box);
  board.resize(box.clientWidth, box.clientHeight);
  board.look(app.route.value.look);
  const stops = [
    ...follow(app, board),
    listenToPointers(canvas, board, {
      onSelect: (hit) => choose(app, hit),
      onHover: (hit, x, y) => {
        board.hover(hit?.bay?.node.id ?? null);
        const text = hit ? tipText(app, hit) : "";
        setTip(text ? { x, y, text } : null);
      },
    }),
    () => watch.disconnect(),
    () => clearTimeout(timer),
  ];
  (globalThis as { bayplan?: unknown }).bayplan = { board, app };
  return { made: board, stop: () => stops.map((stop) => stop()) };
}

function follow(app: App, board: Board): (() => void)[] {
  let revealed = "";
  return [
    effect(() => {
      app.store.shape.value;
      board.reshape();
    }),
    effect(() => {
      for (const table of ["pods", "rails", "nodes", "groups"] as const) {
        app.store.versions[table].value;
      }
      board.changed();
    }),
    effect(() => {
      app.theme.value;
      board.repaint();
    }),
    effect(() => {
      const route = app.route.value;
      const loaded = app.store.loaded.value;
      board.show(route);
      const node = bayOf(app, route.selection);
      if (node && loaded && node !== revealed) {
        board.cover(uncovered(route.selection !== null));
        board.reveal(node, null);
      }
      revealed = node ?? "";
    }),
  ];
}

/** Return the size of the drawing that the details do not cover: they are at its right, or at the bottom. */
function uncovered(selected: boolean): { w: number; h: number } {
  const box = document.querySelector(".drawing")?.getBoundingClientRect();
  const { width: w = 0, height: h = 0 } = box ?? {};
  if (!selected) return { w, h };
  return w > 700 ? { w: w - Math.min(400, w * 0.4), h } : { w, h: h * 0.45 };
}

function bayOf(app: App, selection: App["route"]["value"]["selection"]): string | null {
  if (selection?.kind === "node") return selection.id;
  if (selection?.kind !== "pod") return null;
  const pod = app.store.tables.pods.get(selection.id);
  return pod ? pod.node || pod.upcoming || null : null;
}

function choose(app: App, { bay, pod, area }: Hit): void {
  if (pod) app.select({ kind: "pod", id: pod.id });
  else if (bay) app.select({ kind: "node", id: bay.node.id });
  else if (area && app.store.tables.groups.has(area.group)) {
    app.select({ kind: "group", id: area.group });
  } else app.select(null);
}

function tipText(app: App, { bay, pod, limit }: Hit): string {
  if (limit) return `${describeAttachLimit(limit)}, limit from: ${limit.origin || "unknown"}`;
  if (pod) return describePod(pod);
  return bay ? describeNode(app.store, bay.node) : "";
}

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Handle a key of the drawing; return whether it was one. */
function key(app: App, board: Board, event: KeyboardEvent): boolean {
  const arrow = ARROWS[event.key];
  if (arrow && event.shiftKey) board.pan(-arrow[0] * STEP, -arrow[1] * STEP);
  else if (arrow) selectNeighbour(app, board, arrow);
  else if (event.key === "+" || event.key === "=") board.zoom(1.4);
  else if (event.key === "-") board.zoom(1 / 1.4);
  else if (event.key === "0") board.fit();
  else if (event.key === "Enter") {
    const node = bayOf(app, app.route.value.selection);
    if (node) board.reveal(node, NEAR);
    document.querySelector<HTMLElement>(".details")?.focus();
  } else return false;
  return true;
}

function selectNeighbour(app: App, board: Board, [dx, dy]: readonly [number, number]): void {
  const from = board.layout.bays.get(bayOf(app, app.route.value.selection) ?? "");
  const first = board.layout.bays.values().next().value;
  const to = from ? neighbour(board.layout, from, dx, dy) : first;
  if (!to) return;
  app.go({ selection: { kind: "node", id: to.node.id } }, from === undefined);
  app.announcement.value = describeNode(app.store, to.node);
}
