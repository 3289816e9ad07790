import { addUsage, type Usage } from '../../conversation/usage.js';
import { CR, LF } from '../../wire/bytes.js';
import { imagesUsage } from './answer-decode.js';

/** An event may contain an image of megabytes. Its usage is in this many of its first bytes, or of its last ones. */
const headBytes = 512;
const tailBytes = 1536;
/** What follows `image_generation.` or `image_edit.` in the types of events, the weakest first. */
const types = ['partial_image', 'partial_succeeded', 'completed'];
const [partialImage, succeeded, completed] = [0, 1, 2];
const anyType = `image_(?:generation|edit)\\.(${types.join('|')})`;
/** A type as the value of `type`, as another string of JSON, or as the name of an event. */
const typeInLine = new RegExp(`("type"\\s*:\\s*)?"${anyType}"|^event: ?${anyType}[\\r\\n]`);
/** Beginning of each type, and most bytes that `typeInLine` needs before it and from there on. */
const typeStart = Buffer.from('image_');
const bytesBefore = 16;
const bytesOfType = 40;
const overlap = bytesBefore + bytesOfType;
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
  /** Of the event whose end has not arrived: its first and last bytes, and numbers of its lines by their type. */
  #head = nothing;
  #tail = nothing;
  readonly #names = [0, 0, 0];
  readonly #texts = [0, 0, 0];
  /** The last byte was a CR. */
  #isBehindReturn = false;
  /** Of the line whose end has not arrived: whether any of it has, its last bytes, and its strongest type so far. */
  #isInLine = false;
  #lineTail = nothing;
  #lineRank = -1;
  #isName = false;

  add(run: Buffer): void {
    // Behind a CR, an LF belongs to the same end, which may have been cut.
    let line = this.#isBehindReturn && run[0] === LF ? 1 : 0;
    let start = line;
    if (run.length > 0) this.#isBehindReturn = run.at(-1) === CR;
    let feed = nextOf(run, LF, line);
    let carriageReturn = nextOf(run, CR, line);
    for (let end = Math.min(feed, carriageReturn); end < run.length; end = Math.min(feed, carriageReturn)) {
      const isBlank = !this.#isInLine && line === end;
      if (!isBlank) this.#searchLine(run.subarray(line, end + 1));
      this.#endLine();
      line = end === carriageReturn && run[end + 1] === LF ? end + 2 : end + 1;
      if (feed < line) feed = nextOf(run, LF, line);
      if (carriageReturn < line) carriageReturn = nextOf(run, CR, line);
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
    if (line < run.length) {
      this.#searchLine(run.subarray(line));
      this.#isInLine = true;
    }
    this.#extend(run.subarray(start));
  }

  /** The sum so far. Null if no complete image has reported any. */
  get usage(): Usage | null {
    const usage = this.#usageOfEvent();
    return usage === null ? this.#sum : withCalls(this.#sum, usage);
  }

  /** Number of images that are complete. */
  get completed(): number {
    return Math.max(this.#completed + this.#inEvent(completed), this.#succeeded + this.#inEvent(succeeded));
  }

  /** Number of images that are complete, or of which a partial image has arrived. */
  get begun(): number {
    const isWithin = this.#isWithin || this.#isPartial;
    return Math.max(this.completed, this.#firsts, this.#completed + (isWithin ? 1 : 0));
  }

  /** Number of complete images that have reported a usage. */
  get reported(): number {
    const usage = this.#usageOfEvent();
    // The usage behind events of single images is that of all.
    if (this.#succeeded + this.#inEvent(succeeded) > 0 && (usage ?? this.#sum) !== null)
      return this.completed;
    return this.#reported + (usage === null ? 0 : 1);
  }

  #extend(part: Buffer): void {
    const missing = headBytes - this.#head.length;
    if (missing > 0) this.#head = Buffer.concat([this.#head, part.subarray(0, missing)]);
    this.#tail = Buffer.concat([this.#tail, part.subarray(-tailBytes)]).subarray(-tailBytes);
  }

  /** Reads the type in the next bytes of a line, which may be an image of megabytes with its type behind it. */
  #searchLine(part: Buffer): void {
    if (this.#lineTail.length > 0)
      this.#readTypes(Buffer.concat([this.#lineTail, part.subarray(0, overlap)]));
    this.#readTypes(part);
    const last = part.length >= overlap ? part : Buffer.concat([this.#lineTail, part]);
    this.#lineTail = Buffer.from(last.subarray(-overlap));
  }

  #readTypes(bytes: Buffer): void {
    for (let at = bytes.indexOf(typeStart); at !== -1; at = bytes.indexOf(typeStart, at + 1)) {
      const near = bytes.toString('latin1', Math.max(0, at - bytesBefore), at + bytesOfType);
      const [, key, text, name] = typeInLine.exec(near) ?? [];
      const type = types.indexOf(text ?? name ?? '');
      if (type === -1) continue;
      if (name !== undefined) this.#isName = true;
      // Other strings may be of the client, such as the prompt, so they say something only where no `type` does.
      this.#lineRank = Math.max(this.#lineRank, key === undefined ? type : type + types.length);
    }
  }

  #endLine(): void {
    const type = this.#lineType;
    const counts = this.#isName ? this.#names : this.#texts;
    if (type !== -1) counts[type] = counts[type]! + 1;
    this.#isInLine = false;
    this.#lineTail = nothing;
    this.#lineRank = -1;
    this.#isName = false;
  }

  #endEvent(): void {
    const usage = this.#usageOfEvent();
    if (usage !== null) {
      this.#sum = withCalls(this.#sum, usage);
      this.#reported++;
    }
    if (this.#isPartial) {
      if ([this.#head, this.#tail].some((bytes) => firstPartial.test(bytes.toString('latin1'))))
        this.#firsts++;
      this.#isWithin = true;
    } else if (this.#inEvent(completed) > 0) this.#isWithin = false;
    this.#completed += this.#inEvent(completed);
    this.#succeeded += this.#inEvent(succeeded);
    this.#names.fill(0);
    this.#texts.fill(0);
  }

  /** Index of the type of the line whose last bytes have arrived; -1 for others. */
  get #lineType(): number {
    return this.#lineRank % types.length;
  }

  /** Returns how many events of a type are in the current one: more than one where no blank lines are between them. */
  #inEvent(type: number): number {
    return Math.max(this.#names[type]!, this.#texts[type]! + (this.#lineType === type ? 1 : 0));
  }

  get #isPartial(): boolean {
    return this.#inEvent(partialImage) > 0 && this.#inEvent(succeeded) + this.#inEvent(completed) === 0;
  }

  /** Returns the usage of the event whose last bytes have arrived; null if it is no complete image. */
  #usageOfEvent(): Usage | null {
    return this.#inEvent(completed) > 0 ? (imagesUsage(this.#tail) ?? imagesUsage(this.#head)) : null;
  }
}

/** Adds usages, with the number of images that each says it is of. */
function withCalls(before: Usage | null, more: Usage): Usage {
  const sum = addUsage(before, more);
  if (before === null || (before.calls === undefined && more.calls === undefined)) return sum;
  return { ...sum, calls: (before.calls ?? 0) + (more.calls ?? 0) };
}

/** Returns where a byte is next; the end of all bytes if it is not among them. */
function nextOf(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at === -1 ? bytes.length : at;
}
