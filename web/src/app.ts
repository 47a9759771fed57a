/** What all views share: the store, where the reader is, the connection, and the looks. */
import { type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { format, type Place, parse, type Selection } from "./model/place";
import { isRecording, Store } from "./model/store";
import { Feed } from "./net/feed";
import { Player } from "./net/player";

export type Theme = "light" | "dark";

export class App {
  readonly store = new Store();
  readonly place: Signal<Place>;
  readonly theme: Signal<Theme>;
  /** What a screen reader is told, politely. */
  readonly said = signal("");
  readonly keysShown = signal(false);
  readonly feed: Feed;
  readonly player: Player;

  constructor() {
    this.place = signal(parse(location.hash));
    this.theme = signal(savedTheme());
    this.feed = new Feed(this.store, () => this.place.value.at);
    this.player = new Player(this.store);
    addEventListener("popstate", () => this.arrive());
    addEventListener("hashchange", () => this.arrive());
  }

  /** Go elsewhere; the back button comes back here, unless it is only a matter of looking. */
  go(to: Partial<Place>, keepHistory = true): void {
    const next = { ...this.place.value, ...to };
    const address = format(next);
    if (address === format(this.place.value)) return;
    this.place.value = next;
    if (keepHistory) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }

  /** The address of a place near this one, for links. */
  link(to: Partial<Place>): string {
    return format({ ...this.place.value, ...to });
  }

  select(selection: Selection | null): void {
    this.go({ selection });
  }

  /** The moment of a recording to which the slider points; null where there is only now. */
  moment(): number | null {
    if (!isRecording(this.store.source.value)) return null;
    return Math.round(this.player.position.value * 10) / 10;
  }

  /** The change of a recording after which it is shown, which the slider runs ahead of; or null. */
  shown(): number | null {
    return isRecording(this.store.source.value) ? this.store.seq : null;
  }

  /** Play or pause a recording; the address says where it was left. */
  playOrPause(): void {
    this.player.toggle();
    if (!this.player.playing.value) this.go({ at: this.moment() }, false);
  }

  /** Go to a moment of a recording; the address says it. */
  seek(seconds: number): void {
    void this.player.seek(seconds);
    this.go({ at: this.moment() }, false);
  }

  toggleTheme(): void {
    this.theme.value = this.theme.value === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", this.theme.value);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  }

  private arrive(): void {
    const next = parse(location.hash);
    if (format(next) === format(this.place.value)) return;
    const moved = next.at !== this.place.value.at;
    this.place.value = next;
    if (moved && next.at !== null && isRecording(this.store.source.value))
      void this.player.seek(next.at);
  }
}

function savedTheme(): Theme {
  let saved: string | null = null;
  try {
    saved = localStorage.getItem("theme");
  } catch {
    // As if nothing was saved.
  }
  if (saved === "dark" || saved === "light") return saved;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

const Context = createContext<App | null>(null);
export const AppContext = Context.Provider;

export function useApp(): App {
  const app = useContext(Context);
  if (app === null) throw new Error("outside of the app");
  return app;
}
