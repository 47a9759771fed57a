/** The bays, drawn: the canvas with its keys, its tooltip and the marks' meaning. */
import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { type App, useApp } from "../app";
import { Board, type Hit } from "../bays/board";
import { neighbour } from "../bays/layout";
import { point } from "../bays/pointing";
import { COLOURS, MEASURES } from "../model/place";
import { tellNode, tellPod, tellRail } from "../model/telling";
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
  const place = app.place.value;
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
          label="Stack by"
          choices={MEASURES}
          value={place.by}
          onChoose={(by) => app.go({ by })}
        />
        <Choice
          label="Colour by"
          choices={COLOURS}
          value={place.colour}
          onChoose={(colour) => app.go({ colour })}
        />
      </div>
      <div class="sea">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="bay plan"
          aria-label="Nodes as bays. Arrow keys go from bay to bay, Enter opens one, plus and minus zoom, 0 fits all. The Nodes view has the same as a table."
          onKeyDown={(event) => {
            if (board.current && key(app, board.current, event)) event.preventDefault();
          }}
        >
          The bays are drawn here; the Nodes view has the same as a table.
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

/** Make the board and keep it in step with the store, the place, the theme and the window. */
function open(app: App, canvas: HTMLCanvasElement, setTip: (tip: Tip | null) => void) {
  const board = new Board(canvas, app.store);
  let timer: ReturnType<typeof setTimeout> | undefined;
  board.onLook = (look) => {
    clearTimeout(timer);
    timer = setTimeout(() => app.go({ look }, false), 250);
  };
  const sea = canvas.parentElement as HTMLElement;
  const watch = new ResizeObserver(() => board.resize(sea.clientWidth, sea.clientHeight));
  watch.observe(sea);
  board.resize(sea.clientWidth, sea.clientHeight);
  board.look(app.place.value.look);
  const stops = [
    ...follow(app, board),
    point(canvas, board, {
      chosen: (hit) => choose(app, hit),
      over: (hit, x, y) => {
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
      const place = app.place.value;
      const loaded = app.store.loaded.value;
      board.show(place);
      const node = bayOf(app, place.selection);
      if (node && loaded && node !== revealed) {
        board.cover(uncovered(place.selection !== null));
        board.reveal(node, null);
      }
      revealed = node ?? "";
    }),
  ];
}

/** How much of the drawing the details leave: they lie over its right, or its bottom when it is narrow. */
function uncovered(chosen: boolean): { w: number; h: number } {
  const sea = document.querySelector(".sea")?.getBoundingClientRect();
  const { width: w = 0, height: h = 0 } = sea ?? {};
  if (!chosen) return { w, h };
  return w > 700 ? { w: w - Math.min(400, w * 0.4), h } : { w, h: h * 0.45 };
}

function bayOf(app: App, selection: App["place"]["value"]["selection"]): string | null {
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

function tipText(app: App, { bay, pod, rail }: Hit): string {
  if (rail) return `${tellRail(rail)}, limit from: ${rail.origin || "unknown"}`;
  if (pod) return tellPod(pod);
  return bay ? tellNode(app.store, bay.node) : "";
}

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Keys over the drawing; whether it was one. */
function key(app: App, board: Board, event: KeyboardEvent): boolean {
  const arrow = ARROWS[event.key];
  if (arrow && event.shiftKey) board.pan(-arrow[0] * STEP, -arrow[1] * STEP);
  else if (arrow) walk(app, board, arrow);
  else if (event.key === "+" || event.key === "=") board.zoom(1.4);
  else if (event.key === "-") board.zoom(1 / 1.4);
  else if (event.key === "0") board.fit();
  else if (event.key === "Enter") {
    const node = bayOf(app, app.place.value.selection);
    if (node) board.reveal(node, NEAR);
    document.querySelector<HTMLElement>(".details")?.focus();
  } else return false;
  return true;
}

function walk(app: App, board: Board, [dx, dy]: readonly [number, number]): void {
  const from = board.layout.bays.get(bayOf(app, app.place.value.selection) ?? "");
  const first = board.layout.bays.values().next().value;
  const to = from ? neighbour(board.layout, from, dx, dy) : first;
  if (!to) return;
  app.go({ selection: { kind: "node", id: to.node.id } }, from === undefined);
  app.said.value = tellNode(app.store, to.node);
}
