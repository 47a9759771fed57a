/**
 * Follows a cluster: fetches the state once, then receives changes as server-sent events. A broken stream
 * is resumed after the last change, with exponential backoff. When the server sends `reset`, also because
 * it was restarted, the state is fetched again.
 */
import { signal } from "@preact/signals";
import { type Change, isRecording, type State, type Store } from "../model/store";
import { getState, ping, ResponseError } from "./api";
import { backOff } from "./backoff";

export type Phase =
  | "connecting" // no data yet
  | "live" // receiving changes
  | "static" // a dump or a recording
  | "reconnecting" // the connection was lost
  | "resetting" // fetching the state again
  | "unauthorized"; // the server requires a token

export interface Connection {
  phase: Phase;
  attempt: number;
  message: string;
}

export class Feed {
  readonly connection = signal<Connection>({ phase: "connecting", attempt: 0, message: "" });
  private stream: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private attempt = 0;

  constructor(
    private readonly store: Store,
    /** Return the position in a recording to begin with. */
    private readonly at: () => number | null,
  ) {}

  /** Fetch the whole state, then follow it if it is live. */
  async start(): Promise<void> {
    this.stop();
    try {
      this.store.replace(await this.fetch());
    } catch (error) {
      this.onError(error);
      return;
    }
    this.resume();
  }

  /** Fetch the state at the position of the route; the current one if it is not a recording. */
  private async fetch(): Promise<State> {
    const at = this.at();
    try {
      return await getState(at);
    } catch (error) {
      if (at === null || !(error instanceof ResponseError) || error.status !== 400) throw error;
      return getState(null);
    }
  }

  stop(): void {
    clearTimeout(this.timer);
    this.stream?.close();
    this.stream = null;
  }

  /** Reconnect now, without waiting for the backoff. */
  retry(): void {
    if (this.stream !== null) return;
    this.attempt = 0;
    void this.reconnect();
  }

  private follow(): void {
    this.stop();
    const stream = new EventSource(`api/stream?after=${this.store.seq}`);
    this.stream = stream;
    stream.addEventListener("open", () => {
      this.attempt = 0;
      this.setPhase(this.store.source.value.live ? "live" : "static");
    });
    stream.addEventListener("change", (event) => this.onChange(event));
    stream.addEventListener("reset", () => {
      this.setPhase("resetting", "Changes were missed; loading the whole state again.");
      void this.start();
    });
    stream.addEventListener("error", () =>
      this.onError(new Error("The connection to the server was lost.")),
    );
  }

  private onChange(event: MessageEvent<string>): void {
    let change: Change;
    try {
      change = JSON.parse(event.data) as Change;
    } catch {
      void this.start();
      return;
    }
    this.store.apply(change);
  }

  private onError(error: unknown): void {
    this.stop();
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof ResponseError && (error.status === 401 || error.status === 403)) {
      this.setPhase("unauthorized", message);
      return;
    }
    this.attempt += 1;
    this.setPhase(this.store.loaded.value ? "reconnecting" : "connecting", message);
    this.timer = setTimeout(() => void this.reconnect(), backOff(this.attempt));
  }

  /** An EventSource does not report why it failed, so send a plain request first. */
  private async reconnect(): Promise<void> {
    if (!this.store.loaded.value) return this.start();
    try {
      await ping();
    } catch (error) {
      this.onError(error);
      return;
    }
    this.resume();
  }

  /** Follow changes, unless it is a recording. A dump has changes, too: causes and plans come later. */
  private resume(): void {
    if (isRecording(this.store.source.value)) this.setPhase("static");
    else this.follow();
  }

  private setPhase(phase: Phase, message = ""): void {
    this.connection.value = { phase, attempt: this.attempt, message };
  }
}
