import { addUsage, type Usage } from '../../conversation/usage.js';
import { CR, LF } from '../../wire/bytes.js';
import { imagesUsage } from './answer-decode.js';

/** An event may contain an image of megabytes. This many of its first bytes have its type, and of its last bytes its usage. */
const headBytes = 512;
const tailBytes = 1536;
/** The type of an event, as its name or in its data. A string cannot contain the quotes. */
const types = 'image_(?:generation|edit)\\.(completed|partial_succeeded|partial_image)';
const anyType = new RegExp(`^event: ?${types}[\\r\\n]|"${types}"`, 'm');
/** The first partial image of an image. */
const firstPartial = /"partial_image_index"\s*:\s*0\b/;
const nothing = Buffer.alloc(0);

/**
 * Counts the images of a stream, and adds up their usages, each of which is in the event of its complete image
 * (https://platform.openai.com/docs/api-reference/images-streaming). Partial images are part of it, and show that it has begun.
 * Ark and MiniMax send an event for each image that has succeeded, and then one of a complete image for all of them. Reads bytes
 * that arrive in arbitrary pieces.
 */
export class StreamedImages {
  #sum: Usage | null = null;
  /** Numbers of images: complete ones, by either event, those with a usage, and those whose first partial image has arrived. */
  #completed = 0;
  #succeeded = 0;
  #reported = 0;
  #firsts = 0;
  /** A partial image has followed the last complete one. */
  #isWithin = false;
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
      // A blank line behind another ends nothing.
      if (this.#head.length === 0 && line - start <= 2) {
        start = line;
        continue;
      }
      this.#extend(run.subarray(start, line));
      this.#endEvent();
      this.#head = nothing;
      this.#tail = nothing;
      start = line;
    }
    if (!isEmpty(run, line, run.length)) this.#isInLine = true;
    this.#extend(run.subarray(start));
  }

  /** The sum so far. Null if no complete image has reported any. */
  get usage(): Usage | null {
    const usage = this.#usageOfEvent();
    return usage === null ? this.#sum : withCalls(this.#sum, usage);
  }

  /** Number of images that are complete. */
  get completed(): number {
    const type = this.#type;
    const completed = this.#completed + (type === 'completed' ? 1 : 0);
    return Math.max(completed, this.#succeeded + (type === 'partial_succeeded' ? 1 : 0));
  }

  /** Number of images that are complete, or of which a partial image has arrived. */
  get begun(): number {
    const isWithin = this.#isWithin || this.#type === 'partial_image';
    return Math.max(this.completed, this.#firsts, this.#completed + (isWithin ? 1 : 0));
  }

  /** Number of complete images that have reported a usage. */
  get reported(): number {
    const usage = this.#usageOfEvent();
    // The usage behind events of single images is that of all.
    if (this.#succeeded > 0 && (usage ?? this.#sum) !== null) return this.completed;
    return this.#reported + (usage === null ? 0 : 1);
  }

  #extend(part: Buffer): void {
    const missing = headBytes - this.#head.length;
    if (missing > 0) this.#head = Buffer.concat([this.#head, part.subarray(0, missing)]);
    this.#tail = Buffer.concat([this.#tail, part.subarray(-tailBytes)]).subarray(-tailBytes);
  }

  #endEvent(): void {
    switch (this.#type) {
      case 'completed': {
        const usage = this.#usageOfEvent();
        if (usage !== null) {
          this.#sum = withCalls(this.#sum, usage);
          this.#reported++;
        }
        this.#completed++;
        this.#isWithin = false;
        break;
      }
      case 'partial_succeeded':
        this.#succeeded++;
        break;
      case 'partial_image':
        if (this.#found(firstPartial) !== null) this.#firsts++;
        this.#isWithin = true;
    }
  }

  /** Last part of the type of the event whose last bytes have arrived; null for other events. */
  get #type(): string | null {
    const [, named, typed] = this.#found(anyType) ?? [];
    return named ?? typed ?? null;
  }

  /** Returns the usage of the event whose last bytes have arrived; null if it is no complete image. */
  #usageOfEvent(): Usage | null {
    return this.#type === 'completed' ? (imagesUsage(this.#tail) ?? imagesUsage(this.#head)) : null;
  }

  /** Searches the bytes of the current event that are kept. */
  #found(pattern: RegExp): RegExpExecArray | null {
    return pattern.exec(this.#head.toString('latin1')) ?? pattern.exec(this.#tail.toString('latin1'));
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
