/** The source of the data, the connection, and notes about data that could not be read. */
import { useState } from "preact/hooks";
import { useApp } from "../app";
import { clock } from "../model/formats";
import type { Phase } from "../net/feed";

const TEXTS: Record<Phase, string> = {
  connecting: "connecting…",
  live: "live",
  static: "",
  reconnecting: "reconnecting…",
  resetting: "reloading…",
  unauthorized: "access denied",
};

export function Status() {
  const app = useApp();
  const { phase, message, attempt } = app.feed.connection.value;
  const source = app.store.source.value;
  const tries = attempt > 1 ? `, attempt ${attempt}` : "";
  return (
    <div class={`status ${phase}`} role="status" title={message}>
      <span class="dot" aria-hidden="true" />
      <span class="words">
        {phase === "static" ? source.kind : TEXTS[phase]}
        {phase === "reconnecting" || phase === "connecting" ? tries : ""}
      </span>
      <span class="source">{source.name}</span>
      <time dateTime={app.store.time.value}>{clock(app.store.time.value)}</time>
      {phase === "reconnecting" && (
        <button type="button" onClick={() => app.feed.retry()}>
          Reconnect
        </button>
      )}
    </div>
  );
}

export function Notes() {
  const notes = useApp().store.notes.value;
  const [hidden, setHidden] = useState("");
  const all = notes.join("\n");
  if (notes.length === 0 || hidden === all) return null;
  return (
    <aside class="notes" aria-label="Data that could not be read">
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
      <button type="button" aria-label="Hide the notes" onClick={() => setHidden(all)}>
        ✕
      </button>
    </aside>
  );
}
