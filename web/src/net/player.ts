/**
 * Playing a recording: a position in seconds from its beginning, moved by the reader or by playing. A
 * jump fetches the state at that moment; playing on applies the changes in between as their time comes.
 */
import { signal } from "@preact/signals";
import type { Change, Store } from "../model/store";
import { getChanges, getState, getTimeline, type Timeline } from "./api";

export const SPEEDS = [1, 5, 20, 60, 300] as const;
const MOST = 500;
const FEW = 50;

/** About a minute for the whole. */
export function fittingSpeed(seconds: number): number {
  return SPEEDS.findLast((speed) => speed * 30 <= seconds) ?? SPEEDS[0];
}

export class Player {
  readonly timeline = signal<Timeline | null>(null);
  readonly position = signal(0);
  readonly playing = signal(false);
  readonly speed = signal<number>(20);
  readonly problem = signal("");
  /** Counts up when a state is shown that stays: a jump has been made, or playing has stopped. */
  readonly rests = signal(0);
  private ahead: Change[] = [];
  private atEnd = false;
  private asking = false;
  private wanted: number | null = null;
  private lastFrame = 0;
  private begin = 0;

  constructor(private readonly store: Store) {}

  /** Fetch the time line; the state that is loaded is where playing begins. */
  async open(): Promise<void> {
    this.begin = Date.parse(this.store.source.value.from ?? "");
    this.position.value = this.secondsOf(this.store.time.value);
    try {
      this.timeline.value = await getTimeline();
      this.speed.value = fittingSpeed(this.seconds);
    } catch (error) {
      this.problem.value = String(error);
    }
  }

  get seconds(): number {
    return this.timeline.value?.seconds ?? 0;
  }

  /** Go to a moment. Of jumps asked for while one is under way, only the last is made. */
  async seek(seconds: number): Promise<void> {
    const to = Math.min(Math.max(0, seconds), this.seconds || seconds);
    this.position.value = to;
    this.wanted = to;
    if (this.asking) return;
    this.asking = true;
    try {
      while (this.wanted !== null) {
        const next: number = this.wanted;
        this.wanted = null;
        this.store.replace(await getState(next));
        this.rests.value += 1;
        this.ahead = [];
        this.atEnd = false;
      }
      this.problem.value = "";
    } catch (error) {
      this.problem.value = String(error);
      this.playing.value = false;
    } finally {
      this.asking = false;
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
    this.rests.value += 1;
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
    if (!this.asking) this.advance(passed * this.speed.value);
    requestAnimationFrame((next) => this.frame(next));
  }

  /** Move on by so many seconds of the recording, as far as its changes are here. */
  private advance(by: number): void {
    let to = this.position.value + by;
    while (this.ahead.length && this.secondsOf((this.ahead[0] as Change).time) <= to) {
      this.store.apply(this.ahead.shift() as Change);
    }
    if (this.ahead.length < FEW && !this.atEnd) {
      if (this.ahead.length === 0) to = Math.min(to, this.position.value);
      void this.fetchAhead();
    }
    this.position.value = Math.min(to, this.seconds);
    if (this.atEnd && this.position.value >= this.seconds) this.pause();
  }

  private async fetchAhead(): Promise<void> {
    this.asking = true;
    try {
      const after = this.ahead.at(-1)?.seq ?? this.store.seq;
      const got = await getChanges(after, MOST);
      this.ahead.push(...got.changes);
      this.atEnd = got.end;
    } catch (error) {
      this.problem.value = String(error);
      this.playing.value = false;
    } finally {
      this.asking = false;
      if (this.wanted !== null) void this.seek(this.wanted);
    }
  }

  private secondsOf(time: string): number {
    const seconds = (Date.parse(time) - this.begin) / 1000;
    return Number.isFinite(seconds) ? Math.max(0, seconds) : 0;
  }
}
