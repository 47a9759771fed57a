/** The search field with its results; bays and lists are filtered by it, too. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type App, useApp } from "../app";
import { type Found, find } from "../model/search";

const PAUSE = 120;

export function SearchBox() {
  const app = useApp();
  const [text, setText] = useState(app.route.value.query);
  const [found, setFound] = useState<Found[]>([]);
  const [marked, setMarked] = useState(-1);
  const [open, setOpen] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => setText(app.route.value.query), [app.route.value.query]);

  const type = (query: string) => {
    setText(query);
    setOpen(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setFound(find(app.store, query));
      setMarked(-1);
      app.go({ query: query.trim() }, false);
    }, PAUSE);
  };
  const choose = (one: Found | undefined) => {
    if (one) openResult(app, one);
    setOpen(false);
  };
  const key = (event: KeyboardEvent & { currentTarget: HTMLInputElement }) => {
    if (event.key === "ArrowDown") setMarked(Math.min(found.length - 1, marked + 1));
    else if (event.key === "ArrowUp") setMarked(Math.max(-1, marked - 1));
    else if (event.key === "Enter") choose(found[Math.max(0, marked)] ?? find(app.store, text)[0]);
    else if (event.key === "Escape") leave(event.currentTarget, text, type, setOpen);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = open && found.length > 0;
  return (
    <search class="search">
      <input
        type="search"
        list={undefined}
        placeholder="Search  /"
        aria-label="Search nodes, pods, groups and queues"
        role="combobox"
        aria-expanded={shown}
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant={shown && marked >= 0 ? `found-${marked}` : undefined}
        value={text}
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={key}
        onBlur={() => setOpen(false)}
        spellcheck={false}
        autocomplete="off"
      />
      <div id="found" role="listbox" tabIndex={-1} aria-label="Results" hidden={!shown}>
        {found.map((one, i) => (
          <div
            key={`${one.kind} ${one.id}`}
            id={`found-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === marked}
            onPointerDown={(event) => {
              event.preventDefault();
              choose(one);
            }}
          >
            <b>{one.id}</b>
            <span>{one.hint === one.kind ? one.kind : `${one.kind} · ${one.hint}`}</span>
          </div>
        ))}
      </div>
    </search>
  );
}

function leave(
  input: HTMLInputElement,
  text: string,
  type: (query: string) => void,
  setOpen: (open: boolean) => void,
): void {
  if (text === "") input.blur();
  else type("");
  setOpen(false);
}

/** Select a result; a queue is shown in the view of queues. */
function openResult(app: App, one: Found): void {
  const view = one.kind === "queue" ? "queues" : app.route.value.view;
  app.go({ view, selection: { kind: one.kind, id: one.id } });
}
