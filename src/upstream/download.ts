import { performance } from 'node:perf_hooks';
import { type FaultPlace, GatewayError, type Guarded, guard, handFault } from '../errors.js';
import { ByteBlocks } from '../wire/byte-blocks.js';
import { noLines } from '../wire/head.js';
import { LeastRate, type RateBound } from './least-rate.js';
import { RemoteFetch, type RemoteOwner } from './remote-fetch.js';
import { Refusal, type RemoteOptions } from './remote-url.js';
import type { ResponseHead, UpstreamClient, UpstreamFailure } from './types.js';

/** Memory for the file is reserved in steps of this many bytes. */
const holdStep = 64 * 1024;
const lookEveryMs = 1000;

export interface DownloadOptions extends RemoteOptions {
  /** Larger files are refused. */
  readonly maxBytes: number;
  /** Time limit for the whole download, from the lookup of names through redirects to the last byte. */
  readonly timeoutMs: number;
  /** The owner of the download. An exception is reported to it, and `done` is not called. */
  readonly owner: Guarded;
  /** The slowest transfer that is accepted. A slower one is given up. */
  readonly rate: RateBound;
  /**
   * Called before the file takes up this many bytes of memory in total.
   * @throws {GatewayError} when there is no room for them, which ends the download
   */
  readonly hold: (bytes: number) => void;
  readonly client: UpstreamClient;
}

export interface Downloaded {
  readonly bytes: Buffer;
  /** The `content-type` without its parameters, lower-case, or null. */
  readonly mediaType: string | null;
}

/**
 * Fetches a file into memory. Error messages are written for whoever supplied the URL: they contain no address.
 * @param done called once, never before this returns; the error is `invalid_value` without a `param`
 * @returns a function that cancels the download; `done` is not called after it
 */
export function download(
  url: string,
  options: DownloadOptions,
  done: (result: Downloaded | GatewayError) => void,
): () => void {
  const transfer = new Transfer(url, options, done);
  return () => transfer.end();
}

class Transfer implements RemoteOwner {
  readonly #url: string;
  readonly #options: DownloadOptions;
  readonly #done: (result: Downloaded | GatewayError) => void;
  readonly #fetch: RemoteFetch;
  readonly #timer: NodeJS.Timeout;
  readonly #looks: NodeJS.Timeout;
  readonly #blocks = new ByteBlocks();
  #mediaType: string | null = null;
  /** Bytes of memory that are reserved. */
  #held = 0;
  #over = false;
  /** Set once the head of the answer has arrived. */
  #rate: LeastRate | null = null;

  constructor(url: string, options: DownloadOptions, done: (result: Downloaded | GatewayError) => void) {
    this.#url = url;
    this.#options = options;
    this.#done = done;
    const { client, timeoutMs } = options;
    this.#timer = setTimeout(
      this.#guard(() => this.#fail(new Refusal('it took too long'))),
      timeoutMs,
    );
    this.#looks = setInterval(
      this.#guard(() => this.#look()),
      lookEveryMs,
    );
    const deadlines = {
      connectMs: timeoutMs,
      firstByteMs: timeoutMs,
      idleMs: timeoutMs,
      totalMs: timeoutMs,
    };
    this.#fetch = new RemoteFetch(client, { hosts: options, lines: noLines, deadlines }, this);
    this.#fetch.fetch(url);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.end();
    handFault(this.#options.owner, where, fault);
  }

  #guard(callback: () => void): () => void {
    return guard('timer', this, callback);
  }

  /** Frees everything. Nothing is reported after this. */
  end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    clearInterval(this.#looks);
    this.#fetch.cancel();
  }

  onHead(head: ResponseHead): void {
    const { status, contentCoding, contentLength, contentType } = head;
    if (status !== 200) {
      this.#fail(new Refusal(`the answer has the status ${status}`));
    } else if (contentCoding !== null && contentCoding !== 'identity') {
      this.#fail(new Refusal('the answer is compressed'));
    } else if (contentLength > this.#options.maxBytes) {
      this.#fail(this.#tooLarge());
    } else {
      this.#rate = new LeastRate(performance.now());
      const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
      this.#mediaType = type === '' ? null : type;
    }
  }

  onData(piece: Buffer): boolean {
    const { maxBytes } = this.#options;
    const size = this.#blocks.length + piece.length;
    if (size > maxBytes) {
      this.#fail(this.#tooLarge());
      return true;
    }
    if (size > this.#held) {
      this.#held = Math.min(maxBytes, size + holdStep);
      if (!this.#hold(this.#held)) return true;
    }
    this.#blocks.add(piece);
    return true;
  }

  onEnd(): void {
    const { length } = this.#blocks;
    // Twice the size: the blocks stay in memory until they have been concatenated.
    if (!this.#hold(2 * length)) return;
    this.#finish({ bytes: Buffer.concat(this.#blocks.pieces(), length), mediaType: this.#mediaType });
  }

  onFailure({ reason, detail }: UpstreamFailure): void {
    const what =
      reason === 'tls_failed'
        ? 'no secure connection to it can be made'
        : reason.endsWith('timeout')
          ? 'it took too long'
          : 'the connection to it failed';
    this.#fail(new Refusal(what, { cause: detail }));
  }

  onUnreached(error: GatewayError | Refusal): void {
    this.#fail(error);
  }

  /** @returns false when there is no room, which has ended the download */
  #hold(bytes: number): boolean {
    try {
      this.#options.hold(bytes);
      return true;
    } catch (fault) {
      if (!(fault instanceof GatewayError)) throw fault;
      this.#finish(fault);
      return false;
    }
  }

  /** Checks the rate, about once a second. */
  #look(): void {
    if (this.#rate?.isTooSlow(performance.now(), this.#blocks.length, this.#options.rate))
      this.#fail(new Refusal('it comes too slowly'));
  }

  #tooLarge(): Refusal {
    return new Refusal(`it is larger than ${this.#options.maxBytes} bytes`);
  }

  #fail(error: Error): void {
    const url = URL.canParse(this.#url) ? new URL(this.#url) : null;
    const what = url === null ? 'The file' : `The file at ${url.host || url.protocol}`;
    const message = `${what} cannot be fetched: ${error.message}.`;
    this.#finish(new GatewayError('invalid_value', message, { cause: error }));
  }

  #finish(result: Downloaded | GatewayError): void {
    if (this.#over) return;
    this.end();
    this.#done(result);
  }
}
