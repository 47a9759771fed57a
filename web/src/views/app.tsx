/** The page: the header with views, search and connection, the current view, and the details. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { useApp } from "../app";
import { VIEWS, type View } from "../model/route";
import { announce } from "./announce";
import { BaysView } from "./bays";
import { Details } from "./details";
import { EventsView } from "./events";
import { KeysHelp, useKeys } from "./keys";
import { NodesView } from "./nodes";
import { PendingView } from "./pending";
import { PlanView } from "./plan";
import { QueuesView } from "./queues";
import { ReplayBar } from "./replay";
import { SearchBox } from "./search";
import { Notes, Status } from "./status";

export const TITLES: Record<View, string> = {
  bays: "Bays",
  nodes: "Nodes",
  pending: "Pending",
  queues: "Queues",
  plan: "Plan",
  events: "Events",
};

const CONTENT: Record<View, () => JSX.Element> = {
  bays: BaysView,
  nodes: NodesView,
  pending: PendingView,
  queues: QueuesView,
  plan: PlanView,
  events: EventsView,
};

export function Page() {
  const app = useApp();
  const { view, selection } = app.route.value;
  const View = CONTENT[view];
  useKeys(app);
  useEffect(() => announce(app), [app]);
  useEffect(() => {
    document.documentElement.dataset.theme = app.theme.value;
  }, [app.theme.value]);
  useEffect(() => {
    const name = app.store.source.value.name;
    document.title = `${TITLES[view]}${name ? ` · ${name}` : ""} · Bayplan`;
  }, [view, app.store.source.value]);
  return (
    <>
      <button type="button" class="skip" onClick={focusMain}>
        Skip to content
      </button>
      <Head />
      <Notes />
      <div class={`body view-${view}${selection ? " selected" : ""}`}>
        <main id="main" tabIndex={-1} class={`in-${view}`}>
          {app.store.loaded.value ? <View /> : <Loading />}
        </main>
        {selection && app.store.loaded.value && <Details selection={selection} />}
      </div>
      <ReplayBar />
      <KeysHelp />
      <div class="sr" role="status" aria-live="polite">
        {app.announcement.value}
      </div>
    </>
  );
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}

function Head() {
  const app = useApp();
  const dark = app.theme.value === "dark";
  return (
    <header>
      <a class="brand" href="#/bays">
        <span class="mark" aria-hidden="true" />
        Bayplan
      </a>
      <nav aria-label="Views">
        {VIEWS.map((view) => (
          <a
            key={view}
            href={app.link({ view })}
            aria-current={view === app.route.value.view ? "page" : undefined}
          >
            {TITLES[view]}
            <Count view={view} />
          </a>
        ))}
      </nav>
      <SearchBox />
      <Status />
      <span class="buttons">
        <button
          type="button"
          aria-label={dark ? "Light colours" : "Dark colours"}
          onClick={() => app.toggleTheme()}
        >
          {dark ? "☀" : "☾"}
        </button>
        <button
          type="button"
          aria-label="Keyboard shortcuts"
          onClick={() => (app.keysShown.value = true)}
        >
          ?
        </button>
      </span>
    </header>
  );
}

/** The number of pending pods, beside the name of the view. */
function Count({ view }: { view: View }) {
  const { store } = useApp();
  if (view !== "pending") return null;
  store.versions.waiting.value;
  let count = 0;
  for (const row of store.tables.waiting.values()) count += row.count;
  return count > 0 ? <b class="count">{count}</b> : null;
}

function Loading() {
  const { phase, message } = useApp().feed.connection.value;
  const denied = phase === "unauthorized";
  return (
    <p class="empty" role={denied ? "alert" : undefined}>
      {denied ? message || "The server denied access." : "Loading the cluster…"}
      {!denied && message && <small>{message}</small>}
    </p>
  );
}
