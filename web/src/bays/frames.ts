/** How long the work of drawing took, of the last frames: what `python -m bench page` reads. */

const KEPT = 1024;

export class Frames {
  /** Milliseconds of work in each of the last frames, in a ring. */
  readonly work = new Float64Array(KEPT);
  count = 0;
  /** When the first frame with bays was drawn, and the last, on the page's own clock. */
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
