/** Keyboard shortcuts, and the dialog that lists them. */
import { useEffect, useRef } from "preact/hooks";
import type { App } from "../app";
import { useApp } from "../app";
import { VIEWS } from "../model/route";

const KEYS: readonly (readonly [string, string])[] = [
  ["1 … 6", "Bays, Nodes, Pending, Queues, Plan, Events"],
  ["/", "Search; Enter opens the result, Esc clears"],
  ["Esc", "Close dialogs, then clear the selection"],
  ["m", "Size pods and nodes by CPU or memory"],
  ["c", "Colour pods by state, namespace, owner or queue"],
  ["t", "Dark or light theme"],
  ["e", "Move the focus to the details"],
  ["?", "Show these shortcuts"],
  ["← ↑ → ↓", "Bays: select the next bay; lists: up and down"],
  ["Shift with arrows", "Bays: pan"],
  ["+ − 0", "Bays: zoom in, zoom out, show all"],
  ["Enter", "Open the details of the selection"],
  ["Space", "Recording: play or pause"],
  [", .", "Recording: ten seconds back and forward (with Shift: previous and next mark)"],
];

export function useKeys(app: App): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape" ? closeTop(app) : !typing(event.target) && act(app, event)) {
        event.preventDefault();
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [app]);
}

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches("input:not([type=radio]), textarea, select")
  );
}

function closeTop(app: App): boolean {
  if (app.keysShown.value) app.keysShown.value = false;
  else if (app.route.value.selection) app.select(null);
  else return false;
  return true;
}

function act(app: App, event: KeyboardEvent): boolean {
  const { by, colour } = app.route.value;
  const view = VIEWS[Number(event.key) - 1];
  if (view) app.go({ view });
  else if (event.key === "/") document.querySelector<HTMLElement>(".search input")?.focus();
  else if (event.key === "?") app.keysShown.value = true;
  else if (event.key === "m") app.go({ by: by === "cpu" ? "memory" : "cpu" });
  else if (event.key === "c") app.go({ colour: nextColour(colour) });
  else if (event.key === "t") app.toggleTheme();
  else if (event.key === "e") document.querySelector<HTMLElement>(".details")?.focus();
  else return replayKey(app, event);
  return true;
}

function nextColour(colour: App["route"]["value"]["colour"]) {
  const order = ["state", "namespace", "owner", "queue"] as const;
  return order[(order.indexOf(colour) + 1) % order.length] ?? "state";
}

function replayKey(app: App, event: KeyboardEvent): boolean {
  const { player } = app;
  if (player.timeline.value === null) return false;
  const at = player.position.value;
  const go = (to: number) => app.seek(to);
  if (event.key === " " && !onButton(event.target)) app.playOrPause();
  else if (event.key === ",") go(at - 10);
  else if (event.key === ".") go(at + 10);
  else if (event.key === "<") go(player.markBefore(at));
  else if (event.key === ">") go(player.markAfter(at));
  else return false;
  return true;
}

function onButton(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("button, summary, a, input");
}

export function KeysHelp() {
  const app = useApp();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (app.keysShown.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [app.keysShown.value]);
  return (
    <dialog
      ref={dialog}
      aria-label="Keyboard shortcuts"
      onClose={() => (app.keysShown.value = false)}
    >
      <h2>Keyboard shortcuts</h2>
      <table class="keys">
        <tbody>
          {KEYS.map(([key, text]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <button type="button" onClick={() => (app.keysShown.value = false)}>
        Close
      </button>
    </dialog>
  );
}
