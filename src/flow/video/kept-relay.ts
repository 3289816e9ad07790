import { performance } from 'node:perf_hooks';
import { type FaultPlace, GatewayError } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import type { CallOutcome } from '../../metrics/call-record.js';
import type { KeptFile } from '../../video/content-folder.js';
import { type ByteRange, satisfiedRange } from '../../wire/range.js';
import { account } from '../account.js';
import { timingLine } from '../answer-lines.js';
import type { AuthenticatedCall } from '../call.js';
import { refuse } from '../refuse.js';
import type { Services } from '../services.js';
import { refuseRange, tooManyDownloads } from './content-source.js';
import type { DownloadSource } from './downloads.js';

interface KeptRequest {
  /** Closed when the answer has ended. */
  readonly kept: KeptFile;
  readonly range: ByteRange | null;
  /** Header lines of the answer, CRLF before each. */
  readonly lines: string;
}

/** Each open file takes a descriptor, of which a worker has so many to spare. */
const keptVideos: DownloadSource = { identity: 'kept videos', maxConnections: 1024 };
/** What is read at once and held for one client. */
const pieceBytes = 256 * 1024;

/** Answers with a video that is kept here, or with part of it. */
export function relayKept(services: Services, call: AuthenticatedCall, request: KeptRequest): void {
  new KeptRelay(services, call, request).start();
}

/** Sends a file as fast as its client takes it. */
class KeptRelay implements ExchangeListener {
  readonly #services: Services;
  readonly #call: AuthenticatedCall;
  readonly #request: KeptRequest;
  #at = 0;
  /** Behind the last byte that is sent. */
  #end = 0;
  #isSending = false;
  #isOver = false;

  constructor(services: Services, call: AuthenticatedCall, request: KeptRequest) {
    this.#services = services;
    this.#call = call;
    this.#request = request;
  }

  start(): void {
    const call = this.#call;
    if (call.accounted) {
      this.#close();
      return;
    }
    const { exchange } = call;
    const { kept, range, lines } = this.#request;
    exchange.listener = this;
    call.validatedAt = performance.now();
    call.place?.give();
    call.place = this.#services.downloads.take(call.key.id, keptVideos);
    if (call.place === null) {
      this.#close();
      refuse(this.#services, call, tooManyDownloads(keptVideos));
      return;
    }
    const part = range === null ? null : satisfiedRange(range, kept.bytes);
    if (range !== null && part === null) {
      this.#close();
      refuseRange(this.#services, call, `bytes */${kept.bytes}`, lines);
      return;
    }
    const { first, last } = part ?? { first: 0, last: kept.bytes - 1 };
    this.#at = first;
    this.#end = last + 1;
    const all =
      `\r\ncontent-type: ${kept.contentType}\r\nx-content-type-options: nosniff${lines}` +
      (part === null ? '' : `\r\ncontent-range: bytes ${first}-${last}/${kept.bytes}`) +
      timingLine(call);
    if (exchange.method === 'HEAD' || this.#at === this.#end) {
      exchange.respondEmpty(200, all, kept.bytes);
      this.#settle('complete');
      return;
    }
    exchange.begin(part === null ? 200 : 206, all, this.#end - this.#at);
    call.endedAt = 0;
    this.#send();
  }

  onDrained(): void {
    this.#send();
  }

  onClientGone(): void {
    this.#settle('client_gone');
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#call.onFault(where, fault);
  }

  #send(): void {
    if (this.#isSending || this.#isOver) return;
    this.#isSending = true;
    this.#pass().then(
      () => {
        this.#isSending = false;
      },
      (fault: unknown) => this.#break(fault),
    );
  }

  /** Until all is sent, or the client does not keep up. */
  async #pass(): Promise<void> {
    const { exchange } = this.#call;
    for (let isFlowing = true; isFlowing; ) {
      const left = this.#end - this.#at;
      const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, left));
      const { bytesRead } = await this.#request.kept.handle.read(piece, 0, piece.length, this.#at);
      if (this.#isOver) return;
      if (bytesRead === 0) throw new Error('the file of a kept video is shorter than it was');
      this.#at += bytesRead;
      isFlowing = exchange.write(piece.subarray(0, bytesRead));
      if (this.#at < this.#end) continue;
      exchange.end();
      this.#settle('complete');
      return;
    }
  }

  /** The length was promised: only a cut connection tells the client that bytes are missing, and it can resume. */
  #break(fault: unknown): void {
    if (this.#isOver) return;
    this.#call.error = new GatewayError('internal_error', null, { cause: fault });
    this.#services.reportFault('promise', fault, this.#call);
    this.#call.exchange.abort();
    this.#settle('refused');
  }

  #settle(outcome: CallOutcome): void {
    if (this.#isOver) return;
    this.#close();
    account(this.#services, this.#call, outcome);
  }

  #close(): void {
    this.#isOver = true;
    this.#request.kept.handle.close().catch((fault: unknown) => {
      this.#services.reportFault('promise', fault, this.#call);
    });
  }
}
