/** The events of the cluster, the newest first. */
import { useApp } from "../app";
import { clock, plural } from "../model/formats";
import type { Kind, Selection } from "../model/route";
import type { Event } from "../model/rows";
import type { Store } from "../model/store";
import { Choice, Empty, Ref } from "./parts";

const SHOWN = 500;
const TYPES = ["all", "Warning", "Normal"] as const;

export function EventsView() {
  const app = useApp();
  app.store.versions.events.value;
  const { type, query } = app.route.value;
  const events = chosen([...app.store.tables.events.values()], type, query.toLowerCase());
  const shown = events.slice(0, SHOWN);
  return (
    <section aria-label="Events">
      <div class="tools">
        <Choice
          label="Show"
          choices={TYPES}
          value={TYPES.find((one) => one === type) ?? "all"}
          onChoose={(one) => app.go({ type: one === "all" ? "" : one })}
        />
        <span>
          {plural(events.length, "event")}
          {events.length > SHOWN && `, the newest ${SHOWN} are shown`}
        </span>
      </div>
      {shown.length === 0 && <Empty>No events{query || type ? " match" : ""}.</Empty>}
      <ol class="events">
        {shown.map((event) => (
          <Line key={event.id} event={event} store={app.store} />
        ))}
      </ol>
    </section>
  );
}

function chosen(events: Event[], type: string, query: string): Event[] {
  return events
    .filter((event) => type === "" || event.type === type)
    .filter((event) => query === "" || text(event).includes(query))
    .sort((a, b) => b.time.localeCompare(a.time));
}

function text(event: Event): string {
  return `${event.reason} ${event.about} ${event.message}`.toLowerCase();
}

function Line({ event, store }: { event: Event; store: Store }) {
  const about = aboutOf(event, store);
  return (
    <li class={event.type === "Warning" ? "warning" : ""}>
      <time dateTime={event.time}>{clock(event.time)}</time>
      <b>
        {event.type === "Warning" && (
          <>
            <span class="sr">Warning: </span>
            <span aria-hidden="true">▲ </span>
          </>
        )}
        {event.reason}
        {event.count > 1 && <span class="times"> ×{event.count}</span>}
      </b>
      <span class="about">
        {about ? (
          <Ref kind={about.kind} id={about.id}>
            {event.about}
          </Ref>
        ) : (
          event.about
        )}
      </span>
      <span class="message">{event.message}</span>
    </li>
  );
}

/** Return the pod or node that an event is about, if it exists. */
export function aboutOf(event: Event, store: Store): Selection | null {
  const [kind = "", name = ""] = event.about.split(" ", 2);
  const id = kind === "Node" ? name.replace(/^\//, "") : name;
  const known: Record<string, [Kind, boolean]> = {
    Pod: ["pod", store.tables.pods.has(id)],
    Node: ["node", store.tables.nodes.has(id)],
  };
  const found = known[kind];
  return found?.[1] ? { kind: found[0], id } : null;
}
