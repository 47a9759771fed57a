/** Mouse, pen and touch input of the drawing: drag to pan, wheel or pinch to zoom, click to select. */
import type { Board, Hit } from "./board";

/** Pixels that a pointer may move during a click. */
const CLICK_DISTANCE = 5;

export interface PointerHandlers {
  onSelect(hit: Hit): void;
  /** Called with what is under the pointer and its position in the window; null for nothing. */
  onHover(hit: Hit | null, x: number, y: number): void;
}

/** Listen to the pointers over a canvas; return a function that stops it. */
export function listenToPointers(
  canvas: HTMLCanvasElement,
  board: Board,
  handlers: PointerHandlers,
): () => void {
  const down = new Map<number, { x: number; y: number }>();
  const stop = new AbortController();
  let travelled = 0;

  const at = (event: PointerEvent | WheelEvent) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const on = <K extends keyof HTMLElementEventMap>(
    name: K,
    act: (event: HTMLElementEventMap[K]) => void,
  ) => canvas.addEventListener(name, act, { signal: stop.signal, passive: false });

  on("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, at(event));
    if (down.size === 1) travelled = 0;
  });
  on("pointermove", (event) => {
    const now = at(event);
    const before = down.get(event.pointerId);
    if (before === undefined) {
      handlers.onHover(board.hit(now.x, now.y), now.x, now.y);
      return;
    }
    if (down.size === 2) pinch(board, down, event.pointerId, now);
    else if (travelled > CLICK_DISTANCE) board.pan(now.x - before.x, now.y - before.y);
    else if (travelled + Math.hypot(now.x - before.x, now.y - before.y) <= CLICK_DISTANCE) {
      travelled = Math.max(travelled, Math.hypot(now.x - before.x, now.y - before.y));
      return;
    }
    travelled += Math.hypot(now.x - before.x, now.y - before.y) + CLICK_DISTANCE;
    down.set(event.pointerId, now);
    handlers.onHover(null, 0, 0);
  });
  const up = (event: PointerEvent) => {
    const known = down.delete(event.pointerId);
    const now = at(event);
    if (known && event.type === "pointerup" && travelled <= CLICK_DISTANCE && down.size === 0) {
      handlers.onSelect(board.hit(now.x, now.y));
    }
  };
  on("pointerup", up);
  on("pointercancel", up);
  on("pointerleave", () => handlers.onHover(null, 0, 0));
  on("wheel", (event) => {
    event.preventDefault();
    const { x, y } = at(event);
    const lines = event.deltaMode === 1 ? 30 : 1;
    board.zoom(Math.exp((-event.deltaY * lines) / 400), x, y);
  });
  return () => stop.abort();
}

function pinch(
  board: Board,
  down: Map<number, { x: number; y: number }>,
  moved: number,
  now: { x: number; y: number },
): void {
  const before = down.get(moved);
  const other = [...down].find(([id]) => id !== moved)?.[1];
  if (before === undefined || other === undefined) return;
  const apart = (p: { x: number; y: number }) =>
    Math.max(20, Math.hypot(p.x - other.x, p.y - other.y));
  board.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  board.zoom(apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
}
