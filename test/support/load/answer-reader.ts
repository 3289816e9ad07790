/** Bytes that are kept of a stream's end, to see how it ended. */
const tailBytes = 64;
const doneEvent = 'data: [DONE]\n\n';

type Framing = 'length' | 'chunked' | 'none';

/**
 * Reads one HTTP/1.1 answer incrementally, at any split (RFC 9112 sections 6 and 7.1). It keeps the head, the body of
 * an answer with a content-length, and only the end of a chunked one, so that a stream may have any size.
 */
export class AnswerReader {
  status = 0;
  /** Status line and headers. */
  head = '';
  /** Body bytes, without their transfer coding. */
  bytes = 0;
  framing: Framing = 'none';
  done = false;
  /** Why this is not an HTTP answer, or null. */
  fault: string | null = null;
  #state: 'head' | 'body' | 'size' | 'chunk' | 'chunkEnd' | 'trailer' = 'head';
  #line = '';
  /** Bytes of the body or the chunk that are still missing. */
  #left = 0;
  #kept: Buffer[] = [];
  #tail = '';

  /** @returns false once nothing more is needed: the answer is complete or invalid */
  push(data: Buffer): boolean {
    let at = 0;
    while (at < data.length && this.fault === null && !this.done) {
      at =
        this.#state === 'body' || this.#state === 'chunk' ? this.#take(data, at) : this.#readLine(data, at);
    }
    if (this.done && at < data.length) this.fault = 'bytes behind the end of the answer';
    return this.fault === null && !this.done;
  }

  /** True for an event stream that has the ending of a chat stream. */
  get endsWithDone(): boolean {
    return this.done && this.#tail.endsWith(doneEvent);
  }

  /** The body of an answer with a content-length. */
  get text(): string {
    return Buffer.concat(this.#kept).toString('utf8');
  }

  /** Value of a header of the answer, or null. */
  header(name: string): string | null {
    return new RegExp(`^${name}: *(.*)$`, 'im').exec(this.head)?.[1]?.trim() ?? null;
  }

  #take(data: Buffer, at: number): number {
    const end = Math.min(data.length, at + this.#left);
    const piece = data.subarray(at, end);
    this.bytes += piece.length;
    this.#left -= piece.length;
    if (this.#state === 'body') this.#kept.push(Buffer.from(piece));
    else
      this.#tail = (this.#tail + piece.toString('latin1', Math.max(0, piece.length - tailBytes))).slice(
        -tailBytes,
      );
    if (this.#left > 0) return end;
    if (this.#state === 'chunk') this.#state = 'chunkEnd';
    else this.done = true;
    return end;
  }

  #readLine(data: Buffer, at: number): number {
    const end = data.indexOf(10, at);
    if (end === -1) {
      this.#line += data.toString('latin1', at);
      return data.length;
    }
    const line = (this.#line + data.toString('latin1', at, end)).replace(/\r$/, '');
    this.#line = '';
    this.#onLine(line);
    return end + 1;
  }

  #onLine(line: string): void {
    switch (this.#state) {
      case 'head':
        if (line === '') this.#onHead();
        else this.head += `${line}\r\n`;
        break;
      case 'size':
        this.#left = /^[0-9a-f]+$/i.test(line) ? Number.parseInt(line, 16) : -1;
        if (this.#left === -1) this.fault = `a chunk of the size ${JSON.stringify(line)}`;
        else this.#state = this.#left === 0 ? 'trailer' : 'chunk';
        break;
      case 'chunkEnd':
        if (line !== '') this.fault = 'a chunk that is longer than its size';
        this.#state = 'size';
        break;
      default:
        if (line === '') this.done = true;
    }
  }

  #onHead(): void {
    this.status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(this.head)?.[1] ?? 0);
    if (this.status === 0) {
      this.fault = 'no status line';
      return;
    }
    const length = this.header('content-length');
    if (this.header('transfer-encoding')?.toLowerCase() === 'chunked') {
      this.framing = 'chunked';
      this.#state = 'size';
    } else if (length !== null) {
      this.framing = 'length';
      this.#left = Number(length);
      this.#state = 'body';
      this.done = this.#left === 0;
    } else {
      this.fault = 'an answer without framing';
    }
  }
}
