/**
 * Following a cluster: the whole state once, then its changes as server-sent events. When the stream
 * breaks, it is taken up after the last change that was seen, after a while that grows with each try.
 * When the server says `reset`, or no longer is the one that was followed, the state is fetched anew.
 */
import { signal } from "@preact/signals";
import { type Change, isRecording, type State, type Store } from "../model/store";
import { getState, ping, Refused } from "./api";
import { backOff } from "./backoff";

export type Phase =
  | "connecting" // nothing is known yet
  | "live" // changes come as they happen
  | "still" // a dump or a recording: the cluster stands still
  | "reconnecting" // the stream broke, or the server is gone
  | "resetting" // the page fell behind, and fetches the whole again
  | "refused"; // the server answers, and says no

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
    /** Which moment of a recording is asked for first. */
    private readonly at: () => number | null,
  ) {}

  /** Fetch the whole state, then follow it if it is live. */
  async start(): Promise<void> {
    this.stop();
    try {
      this.store.replace(await this.fetch());
    } catch (error) {
      this.failed(error);
      return;
    }
    this.goOn();
  }

  /** The state at the moment asked for, or now where only now can be asked for. */
  private async fetch(): Promise<State> {
    const at = this.at();
    try {
      return await getState(at);
    } catch (error) {
      if (at === null || !(error instanceof Refused) || error.status !== 400) throw error;
      return getState(null);
    }
  }

  stop(): void {
    clearTimeout(this.timer);
    this.stream?.close();
    this.stream = null;
  }

  /** Try at once rather than when it is time. */
  retry(): void {
    if (this.stream !== null) return;
    this.attempt = 0;
    void this.again();
  }

  private follow(): void {
    this.stop();
    const stream = new EventSource(`api/stream?after=${this.store.seq}`);
    this.stream = stream;
    stream.addEventListener("open", () => {
      this.attempt = 0;
      this.say(this.store.source.value.live ? "live" : "still");
    });
    stream.addEventListener("change", (event) => this.take(event));
    stream.addEventListener("reset", () => {
      this.say("resetting", "The page fell behind; fetching everything again.");
      void this.start();
    });
    stream.addEventListener("error", () => this.failed(new Error("The connection broke.")));
  }

  private take(event: MessageEvent<string>): void {
    let change: Change;
    try {
      change = JSON.parse(event.data) as Change;
    } catch {
      void this.start();
      return;
    }
    this.store.apply(change);
  }

  private failed(error: unknown): void {
    this.stop();
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
      this.say("refused", message);
      return;
    }
    this.attempt += 1;
    this.say(this.store.loaded.value ? "reconnecting" : "connecting", message);
    this.timer = setTimeout(() => void this.again(), backOff(this.attempt));
  }

  /** An event source does not say why it fails, so the first word after a break is a plain question. */
  private async again(): Promise<void> {
    if (!this.store.loaded.value) return this.start();
    try {
      await ping();
    } catch (error) {
      this.failed(error);
      return;
    }
    this.goOn();
  }

  /** A recording is played; of a dump too, more may be found out than its first picture has. */
  private goOn(): void {
    if (isRecording(this.store.source.value)) this.say("still");
    else this.follow();
  }

  private say(phase: Phase, message = ""): void {
    this.connection.value = { phase, attempt: this.attempt, message };
  }
}
