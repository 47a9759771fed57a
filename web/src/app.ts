/** State that all views share: the store, the route, the connection and the theme. */
import { type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { formatRoute, parseRoute, type Route, type Selection } from "./model/route";
import { isRecording, Store } from "./model/store";
import { Feed } from "./net/feed";
import { Player } from "./net/player";

export type Theme = "light" | "dark";

export class App {
  readonly store = new Store();
  readonly route: Signal<Route>;
  readonly theme: Signal<Theme>;
  /** The text of the live region for screen readers. */
  readonly announcement = signal("");
  readonly keysShown = signal(false);
  readonly feed: Feed;
  readonly player: Player;

  constructor() {
    this.route = signal(parseRoute(location.hash));
    this.theme = signal(savedTheme());
    this.feed = new Feed(this.store, () => this.route.value.at);
    this.player = new Player(this.store);
    addEventListener("popstate", () => this.readAddress());
    addEventListener("hashchange", () => this.readAddress());
  }

  /** Change the route; with `keepHistory`, the back button returns to the current one. */
  go(to: Partial<Route>, keepHistory = true): void {
    const next = { ...this.route.value, ...to };
    const address = formatRoute(next);
    if (address === formatRoute(this.route.value)) return;
    this.route.value = next;
    if (keepHistory) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }

  /** Return the address of the current route with changes, for links. */
  link(to: Partial<Route>): string {
    return formatRoute({ ...this.route.value, ...to });
  }

  select(selection: Selection | null): void {
    this.go({ selection });
  }

  /** Return the slider's position in a recording in seconds; null without a recording. */
  position(): number | null {
    if (!isRecording(this.store.source.value)) return null;
    return Math.round(this.player.position.value * 10) / 10;
  }

  /** Return the number of the change that a recording shows, which may lag behind the slider; or null. */
  shownSeq(): number | null {
    return isRecording(this.store.source.value) ? this.store.seq : null;
  }

  /** Play or pause a recording; a pause writes the position into the address. */
  playOrPause(): void {
    this.player.toggle();
    if (!this.player.playing.value) this.go({ at: this.position() }, false);
  }

  /** Go to a position in a recording, and write it into the address. */
  seek(seconds: number): void {
    void this.player.seek(seconds);
    this.go({ at: this.position() }, false);
  }

  toggleTheme(): void {
    this.theme.value = this.theme.value === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", this.theme.value);
    } catch {
      // Without storage, the choice is lost when the page is closed.
    }
  }

  private readAddress(): void {
    const next = parseRoute(location.hash);
    if (formatRoute(next) === formatRoute(this.route.value)) return;
    const moved = next.at !== this.route.value.at;
    this.route.value = next;
    if (moved && next.at !== null && isRecording(this.store.source.value))
      void this.player.seek(next.at);
  }
}

function savedTheme(): Theme {
  let saved: string | null = null;
  try {
    saved = localStorage.getItem("theme");
  } catch {
    // Without storage, nothing was saved.
  }
  if (saved === "dark" || saved === "light") return saved;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

const Context = createContext<App | null>(null);
export const AppContext = Context.Provider;

export function useApp(): App {
  const app = useContext(Context);
  if (app === null) throw new Error("useApp() was called outside of AppContext");
  return app;
}
