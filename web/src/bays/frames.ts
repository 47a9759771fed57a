/** Times of the last frames, which `python -m bench page` reads. */

const KEPT = 1024;

export class Frames {
  /** Milliseconds of work of the last frames, as a ring buffer. */
  readonly work = new Float64Array(KEPT);
  count = 0;
  /** When the first and the last frame with bays were drawn, by performance.now(). */
  first = 0;
  last = 0;
  /** The seq of the state that the last frame showed. */
  seq = 0;

  note(began: number, ended: number, seq: number): void {
    this.work[this.count % KEPT] = ended - began;
    this.count += 1;
    this.last = ended;
    this.seq = seq;
    if (this.first === 0) this.first = ended;
  }
}
