/**
 * Plays a recording. The position is in seconds from its start. A jump fetches the state at the new
 * position; playing applies the changes as their time comes.
 */
import { signal } from "@preact/signals";
import type { Change, Store } from "../model/store";
import { getChanges, getState, getTimeline, type Timeline } from "./api";

export const SPEEDS = [1, 5, 20, 60, 300] as const;
/** Changes that are fetched at once. */
const BATCH = 500;
/** Fetch more changes if fewer are queued. */
const FEW = 50;

/** Return the speed at which the recording takes about a minute. */
export function fittingSpeed(seconds: number): number {
  return SPEEDS.findLast((speed) => speed * 30 <= seconds) ?? SPEEDS[0];
}

export class Player {
  readonly timeline = signal<Timeline | null>(null);
  readonly position = signal(0);
  readonly playing = signal(false);
  readonly speed = signal<number>(20);
  readonly problem = signal("");
  /** Increases when a jump is done or playing has stopped: explanations are fetched again. */
  readonly settled = signal(0);
  private queued: Change[] = [];
  private atEnd = false;
  private fetching = false;
  private wanted: number | null = null;
  private lastFrame = 0;
  private begin = 0;

  constructor(private readonly store: Store) {}

  /** Fetch the timeline; playing begins at the loaded state. */
  async open(): Promise<void> {
    this.begin = Date.parse(this.store.source.value.from ?? "");
    this.position.value = this.secondsOf(this.store.time.value);
    try {
      this.timeline.value = await getTimeline();
      this.speed.value = fittingSpeed(this.seconds);
    } catch (error) {
      this.problem.value = problemText(error);
    }
  }

  get seconds(): number {
    return this.timeline.value?.seconds ?? 0;
  }

  /** Go to a position. Of jumps during another one, only the last is made. */
  async seek(seconds: number): Promise<void> {
    const to = Math.min(Math.max(0, seconds), this.seconds || seconds);
    this.position.value = to;
    this.wanted = to;
    if (this.fetching) return;
    this.fetching = true;
    try {
      while (this.wanted !== null) {
        const next: number = this.wanted;
        this.wanted = null;
        this.store.replace(await getState(next));
        this.settled.value += 1;
        this.queued = [];
        this.atEnd = false;
      }
      this.problem.value = "";
    } catch (error) {
      this.problem.value = problemText(error);
      this.playing.value = false;
    } finally {
      this.fetching = false;
    }
  }

  markBefore(at: number): number {
    return this.marks().findLast((mark) => mark < at - 0.5) ?? 0;
  }

  markAfter(at: number): number {
    return this.marks().find((mark) => mark > at + 0.5) ?? this.seconds;
  }

  private marks(): number[] {
    return (this.timeline.value?.marks ?? []).map((mark) => mark.at).sort((a, b) => a - b);
  }

  toggle(): void {
    if (this.playing.value) this.pause();
    else void this.play();
  }

  pause(): void {
    this.playing.value = false;
    this.settled.value += 1;
  }

  private async play(): Promise<void> {
    if (this.position.value >= this.seconds) await this.seek(0);
    this.playing.value = true;
    this.lastFrame = performance.now();
    requestAnimationFrame((now) => this.frame(now));
  }

  private frame(now: number): void {
    if (!this.playing.value) return;
    const passed = Math.max(0, now - this.lastFrame) / 1000;
    this.lastFrame = now;
    if (!this.fetching) this.advance(passed * this.speed.value);
    requestAnimationFrame((next) => this.frame(next));
  }

  /** Advance by seconds of the recording, as far as its changes are fetched. */
  private advance(by: number): void {
    let to = this.position.value + by;
    while (this.queued.length && this.secondsOf((this.queued[0] as Change).time) <= to) {
      this.store.apply(this.queued.shift() as Change);
    }
    if (this.queued.length < FEW && !this.atEnd) {
      if (this.queued.length === 0) to = Math.min(to, this.position.value);
      void this.fetchNext();
    }
    this.position.value = Math.min(to, this.seconds);
    if (this.atEnd && this.position.value >= this.seconds) this.pause();
  }

  private async fetchNext(): Promise<void> {
    this.fetching = true;
    try {
      const after = this.queued.at(-1)?.seq ?? this.store.seq;
      const got = await getChanges(after, BATCH);
      this.queued.push(...got.changes);
      this.atEnd = got.end;
    } catch (error) {
      this.problem.value = problemText(error);
      this.playing.value = false;
    } finally {
      this.fetching = false;
      if (this.wanted !== null) void this.seek(this.wanted);
    }
  }

  private secondsOf(time: string): number {
    const seconds = (Date.parse(time) - this.begin) / 1000;
    return Number.isFinite(seconds) ? Math.max(0, seconds) : 0;
  }
}

function problemText(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `The recording could not be read: ${reason}`;
}
