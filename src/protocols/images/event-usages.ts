import { addUsage, type Usage } from '../../conversation/usage.js';
import { CR, LF } from '../../wire/bytes.js';
import { imagesUsage } from './answer-decode.js';

/** An event may contain an image of megabytes. This many of its first bytes have its type, and of its last bytes its usage. */
const headBytes = 512;
const tailBytes = 1536;
/** The type of an image that is complete, as the name of an event or in its data. A string cannot contain the quotes. */
const completedType =
  /^event: ?image_(?:generation|edit)\.completed\r?$|"image_(?:generation|edit)\.completed"/m;
const nothing = Buffer.alloc(0);

/**
 * Adds up the usages of the images of a stream, each of which is in the event of its complete image
 * (https://platform.openai.com/docs/api-reference/images-streaming). Partial images are part of it. Reads bytes that arrive in
 * arbitrary pieces.
 */
export class EventUsages {
  #sum: Usage | null = null;
  /** Of the event whose end has not arrived. */
  #head = nothing;
  #tail = nothing;
  /** The last line so far has more than its end. */
  #isInLine = false;

  add(run: Buffer): void {
    let start = 0;
    let line = 0;
    for (let end = run.indexOf(LF); end !== -1; end = run.indexOf(LF, line)) {
      const isBlank = !this.#isInLine && isEmpty(run, line, end);
      this.#isInLine = false;
      line = end + 1;
      if (!isBlank) continue;
      this.#extend(run.subarray(start, line));
      this.#sum = this.#withEvent();
      this.#head = nothing;
      this.#tail = nothing;
      start = line;
    }
    if (!isEmpty(run, line, run.length)) this.#isInLine = true;
    this.#extend(run.subarray(start));
  }

  /** The sum so far. Null if no complete image has reported any. */
  get usage(): Usage | null {
    return this.#withEvent();
  }

  #extend(part: Buffer): void {
    const missing = headBytes - this.#head.length;
    if (missing > 0) this.#head = Buffer.concat([this.#head, part.subarray(0, missing)]);
    this.#tail = Buffer.concat([this.#tail, part.subarray(-tailBytes)]).subarray(-tailBytes);
  }

  /** Returns the sum with the event whose last bytes have arrived. */
  #withEvent(): Usage | null {
    const [head, tail] = [this.#head, this.#tail];
    if (!completedType.test(head.toString('latin1')) && !completedType.test(tail.toString('latin1')))
      return this.#sum;
    const usage = imagesUsage(tail) ?? imagesUsage(head);
    return usage === null ? this.#sum : withCalls(this.#sum, usage);
  }
}

/** Adds usages, with the number of images that each says it is of. */
function withCalls(before: Usage | null, more: Usage): Usage {
  const sum = addUsage(before, more);
  if (before === null || (before.calls === undefined && more.calls === undefined)) return sum;
  return { ...sum, calls: (before.calls ?? 0) + (more.calls ?? 0) };
}

/** Whether a line, or the rest of one, has nothing before its end. */
function isEmpty(bytes: Buffer, from: number, to: number): boolean {
  return from === to || (from + 1 === to && bytes[from] === CR);
}
