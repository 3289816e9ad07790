import { performance } from 'node:perf_hooks';
import { noteVendorAccountRefused } from '../../attempts/attempts.js';
import { readErrorAnswer } from '../../attempts/error-answer.js';
import { failureError } from '../../attempts/reported-error.js';
import { type FaultPlace, GatewayError } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import type { CallOutcome } from '../../metrics/call-record.js';
import { isVendorAccountError, secretError } from '../../protocols/error-formats/vendor-account.js';
import { Gather } from '../../stream/gather.js';
import type { Origin } from '../../upstream/origin.js';
import type { Refusal as Unreached } from '../../upstream/remote-url.js';
import type { ResponseHead, UpstreamFailure } from '../../upstream/types.js';
import { hasEnded } from '../../video/advance.js';
import { type KeptFile, openKept } from '../../video/content-folder.js';
import { type VideoTask, videoVariant } from '../../video/task.js';
import { type HeadLines, headerLine, noLines } from '../../wire/head.js';
import { queryParameter } from '../../wire/query.js';
import {
  type ByteRange,
  matchesTag,
  parseContentRange,
  parseRange,
  type SatisfiedRange,
  satisfiedRange,
} from '../../wire/range.js';
import { timingLine } from '../answer/lines.js';
import type { AuthenticatedCall } from '../call.js';
import { account } from '../record/account.js';
import { refuse } from '../refuse.js';
import type { Services } from '../services.js';
import { type Cancellable, type CollectAnswer, collectAnswer } from '../upstream/collect.js';
import { answerAsync } from '../upstream/waiting-client.js';
import { findTask, taskNotFound } from './answer.js';
import {
  ContentFetch,
  type ContentOwner,
  type ContentSource,
  mediaType,
  problemOf,
  refuseRange,
  sourceOf,
  unreachedError,
} from './content-source.js';
import type { DownloadSource } from './downloads.js';
import { refreshed, renewedUrl } from './poll.js';

interface ContentRequest {
  readonly source: ContentSource;
  /** The range that the client requests, or null for the whole. */
  readonly range: ByteRange | null;
  /** Content type of the answer if the upstream names no image or video type. */
  readonly contentType: string;
  /** Header lines of the answer, CRLF before each. */
  readonly lines: string;
}

/** A client may read as slowly as it likes, as long as it reads; the client connection's own timeout checks that. */
const longestMs = 24 * 60 * 60 * 1000;
/** Bytes read of an upstream's error body. */
const refusalBytes = 8192;
/** Statuses with which file servers answer a signed URL that has expired, or a file that has moved. */
const expiredStatuses: ReadonlySet<number> = new Set([400, 401, 403, 404, 410]);

/** An error answer of the upstream itself whose body is still arriving. */
interface Refusal {
  readonly head: ResponseHead;
  readonly problem: GatewayError;
  readonly body: Gather;
}

/**
 * Streams a file to the client with backpressure on both sides. Serves the requested range whether or not the file's
 * server supports ranges. Redirects are followed, so that a client never learns where the file is.
 */
class ContentRelay implements ContentOwner, ExchangeListener {
  readonly #services: Services;
  readonly #call: AuthenticatedCall;
  readonly #request: ContentRequest;
  readonly #fetch: ContentFetch;
  #refusal: Refusal | null = null;
  readonly #renewal: Cancellable = { cancel: () => {} };
  #isRenewed = false;
  #mode: 'waiting' | 'passing' | 'over' = 'waiting';
  /** Bytes to drop before the requested range. */
  #skip = 0;
  /** Bytes still to be sent; -1 to send all that arrive. */
  #left = -1;
  /** Whether the upstream sends bytes beyond the requested range. */
  #isCut = false;

  constructor(services: Services, call: AuthenticatedCall, request: ContentRequest) {
    this.#services = services;
    this.#call = call;
    this.#request = request;
    const { source, range } = request;
    const wanted = { sender: call, source, lines: rangeLine(range), totalMs: longestMs };
    this.#fetch = new ContentFetch(services, wanted, this);
  }

  start(): void {
    this.#call.exchange.listener = this;
    this.#call.validatedAt = performance.now();
    this.#fetch.start();
  }

  onHead(head: ResponseHead): void {
    this.#call.answeredAt = performance.now();
    this.#call.sentAt = this.#fetch.sentAt;
    this.#begin(head);
  }

  onData(chunk: Buffer): boolean {
    if (this.#refusal !== null && !this.#refusal.body.add(chunk, -1)) this.#endRefusal(this.#refusal);
    return this.#mode === 'passing' ? this.#pass(chunk) : true;
  }

  #pass(chunk: Buffer): boolean {
    let bytes = chunk;
    if (this.#skip > 0) {
      const skipped = Math.min(this.#skip, bytes.length);
      this.#skip -= skipped;
      bytes = bytes.subarray(skipped);
    }
    if (this.#left === -1) return this.#call.exchange.write(bytes);
    if (bytes.length > this.#left) {
      if (!this.#isCut) {
        this.#fetch.cancel();
        this.#break(new GatewayError('upstream_error', 'The upstream sent more than it announced.'));
        return true;
      }
      bytes = bytes.subarray(0, this.#left);
    }
    this.#left -= bytes.length;
    const flowing = this.#call.exchange.write(bytes);
    if (this.#left > 0 || !this.#isCut) return flowing;
    this.#fetch.cancel();
    this.#finish();
    return true;
  }

  onEnd(): void {
    if (this.#refusal !== null) this.#endRefusal(this.#refusal);
    if (this.#mode === 'passing') this.#finish();
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#refusal !== null) this.#endRefusal(this.#refusal);
    if (this.#mode === 'over') return;
    const error = failureError(failure);
    if (this.#mode === 'waiting') {
      this.#refuse(error);
      return;
    }
    this.#break(error);
  }

  onClientGone(): void {
    this.#fetch.cancel();
    this.#renewal.cancel();
    this.#endCall('client_gone');
  }

  onDrained(): void {
    this.#fetch.resume();
  }

  onUnfit(error: GatewayError): void {
    this.#recordFailure(error);
    if (this.#mode === 'passing') this.#break(error);
    else this.#refuse(error);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#call.onFault(where, fault);
  }

  onAsking(origin: Origin): GatewayError | null {
    return this.#services.downloads.take(this.#call, origin);
  }

  onUnreached(error: GatewayError | Unreached): void {
    this.#refuse(unreachedError(error));
  }

  /** Requests a new URL from the upstream when the file's server no longer accepts the old one. */
  #renew(asked: { readonly taskId: string; readonly url: string }, problem: GatewayError): void {
    this.#isRenewed = true;
    this.#fetch.cancel();
    const collectUrl: CollectAnswer = (request) =>
      collectAnswer(this.#services, this.#call, request, this.#renewal);
    renewedUrl(this.#services, this.#call, asked, collectUrl).then(
      (url) => {
        if (this.#mode !== 'waiting') return;
        if (url === null) this.#refuse(problem);
        else this.#fetch.fetch(url);
      },
      (fault: unknown) => {
        if (this.#mode === 'waiting') this.#call.onFault('promise', fault);
      },
    );
  }

  #begin(head: ResponseHead): void {
    const { range } = this.#request;
    const { contentLength } = head;
    if (head.status === 416 && range !== null) {
      this.#refuseRange(head.get('content-range'));
      return;
    }
    const problem = problemOf(head, range);
    const { source } = this.#request;
    if (problem !== null && source.kind === 'url' && !this.#isRenewed && expiredStatuses.has(head.status)) {
      this.#renew(source, problem);
      return;
    }
    const part = head.status === 206 ? parseContentRange(head.get('content-range')) : null;
    // Only the upstream itself can refuse our account.
    if (this.#fetch.isAtUpstream && head.status >= 400 && problem !== null && problem.kind !== 'not_found') {
      this.#refusal = { head, problem, body: new Gather(refusalBytes) };
    } else if (problem !== null) {
      this.#refuse(problem);
    } else if (part !== null) {
      this.#left = part.last - part.first + 1;
      this.#sendPart(head, part, part.length);
    } else if (range === null || contentLength === -1) {
      this.#left = contentLength;
      this.#answer(200, head, '', contentLength);
    } else {
      const satisfied = satisfiedRange(range, contentLength);
      if (satisfied === null) this.#refuseRange(`bytes */${contentLength}`);
      else this.#sendRange(head, satisfied);
    }
  }

  /** Records a refusal of our account. Only the upstream itself knows it, not the servers that keep its files. */
  #recordFailure(error: GatewayError): void {
    const { source } = this.#request;
    if (source.kind !== 'path' || !this.#fetch.isAtUpstream || !isVendorAccountError(error)) return;
    const { upstream, model } = source;
    const { apiKey } = this.#fetch;
    noteVendorAccountRefused(this.#services, this.#call, { upstream, model, apiKey }, error);
  }

  #endRefusal({ head, problem, body }: Refusal): void {
    this.#refusal = null;
    const { source } = this.#request;
    const { error } = readErrorAnswer(source.upstream, head, body.take());
    if (isVendorAccountError(error)) this.onUnfit(error);
    else this.#refuse(problem);
  }

  /** Serves a range cut out of the whole file, which the upstream sends. */
  #sendRange(head: ResponseHead, satisfied: SatisfiedRange): void {
    this.#skip = satisfied.first;
    this.#left = satisfied.last - satisfied.first + 1;
    this.#isCut = satisfied.last + 1 < head.contentLength;
    this.#sendPart(head, satisfied, head.contentLength);
  }

  /** @param length length of the whole file, or -1 if unknown */
  #sendPart(head: ResponseHead, { first, last }: SatisfiedRange, length: number): void {
    const whole = length === -1 ? '*' : length;
    this.#answer(206, head, `\r\ncontent-range: bytes ${first}-${last}/${whole}`, this.#left);
  }

  #answer(status: number, head: ResponseHead, lines: string, length: number): void {
    const { exchange } = this.#call;
    const type = head.contentType ?? '';
    const isTold = mediaType.test(type) && secretError(type, this.#request.source.upstream.secrets) === null;
    const all =
      `\r\ncontent-type: ${isTold ? type : this.#request.contentType}` +
      '\r\nx-content-type-options: nosniff' +
      this.#request.lines +
      lines +
      timingLine(this.#call);
    if (exchange.method === 'HEAD') {
      this.#fetch.cancel();
      exchange.respondEmpty(status, all, length === -1 ? null : length);
      this.#endCall('complete');
      return;
    }
    this.#mode = 'passing';
    exchange.begin(status, all, length);
  }

  #refuseRange(contentRange: string | null): void {
    this.#fetch.cancel();
    this.#mode = 'over';
    refuseRange(this.#services, this.#call, contentRange, this.#request.lines);
  }

  /** Aborts the connection: the content length was sent, and only this shows the client that bytes are missing. */
  #break(error: GatewayError): void {
    this.#call.error = error;
    this.#call.exchange.abort();
    this.#endCall('upstream_error');
  }

  #finish(): void {
    if (this.#left > 0) {
      this.#break(tooShort());
      return;
    }
    this.#call.exchange.end();
    this.#endCall('complete');
  }

  #refuse(error: GatewayError): void {
    this.#fetch.cancel();
    this.#mode = 'over';
    refuse(this.#services, this.#call, error);
  }

  #endCall(outcome: CallOutcome): void {
    this.#mode = 'over';
    this.#fetch.release();
    account(this.#services, this.#call, outcome);
  }
}

function tooShort(): GatewayError {
  return new GatewayError('upstream_error', 'The upstream sent less of the file than it announced.');
}

function rangeLine(range: ByteRange | null): HeadLines {
  if (range === null) return noLines;
  if ('suffix' in range) return headerLine('range', `bytes=-${range.suffix}`);
  return headerLine('range', `bytes=${range.first}-${range.last ?? ''}`);
}

/** Answers with a finished task's video or a range of it: from the kept file, else from where its upstream keeps it. */
export function serveContent(services: Services, call: AuthenticatedCall, id: string): void {
  const { head } = call.exchange;
  const variant = videoVariant(queryParameter(head.query, 'variant'));
  answerAsync(services, call, async (waiting) => {
    const booked = await findTask(services, call, id);
    if (booked === null) throw taskNotFound(id);
    const asked = (): Promise<VideoTask> =>
      refreshed(services, call, booked, (request) => waiting.collect(request));
    const wasOver = hasEnded(booked.task);
    const task = wasOver ? booked.task : await asked();
    if (call.accounted) return;
    if (task.state !== 'completed') throw notFinished(task);
    // A finished video never changes, so its name is a strong validator.
    const tag = `"${id}-${variant.name}"`;
    const lines = `\r\naccept-ranges: bytes\r\netag: ${tag}\r\ncache-control: private, max-age=86400`;
    if (head.ifNoneMatch !== '' && matchesTag(head.ifNoneMatch, tag)) {
      call.exchange.respondEmpty(304, lines + timingLine(call), null);
      account(services, call, 'complete');
      return;
    }
    const holds = head.ifRange === '' || head.ifRange === tag;
    const range = holds && call.exchange.method === 'GET' ? parseRange(head.range) : null;
    const kept = variant.name === 'video' ? await keptOf(services, call, id) : null;
    if (kept !== null) {
      await sendKept(services, call, { kept, range, lines });
      return;
    }
    if (call.accounted) return;
    // Only here is the upstream's address needed: a kept file is served without a call to the upstream.
    const source = sourceOf(call, wasOver ? await asked() : task, variant);
    if (call.accounted) return;
    new ContentRelay(services, call, { source, range, contentType: variant.contentType, lines }).start();
  });
}

/** The kept file of a task's video. One that cannot be opened is logged and null is returned: its upstream may have it. */
async function keptOf(services: Services, call: AuthenticatedCall, id: string): Promise<KeptFile | null> {
  const { videos } = call.running.snapshot;
  if (videos === null) return null;
  try {
    return await openKept(videos, id);
  } catch (fault) {
    services.reportFault('promise', fault, null);
    return null;
  }
}

function notFinished({ id, state, error }: VideoTask): GatewayError {
  if (state === 'failed')
    return new GatewayError('not_found', `The video task '${id}' has failed: ${error?.message ?? ''}`);
  return new GatewayError('not_found', `The video task '${id}' is not finished yet, try again later.`);
}

interface KeptContent {
  /** Closed once the answer has ended. */
  readonly kept: KeptFile;
  readonly range: ByteRange | null;
  /** Header lines of the answer, CRLF before each. */
  readonly lines: string;
}

/** Bounds the open files of kept videos: each takes one of the worker's descriptors. */
const keptVideos: DownloadSource = { identity: 'kept videos', maxConnections: 1024 };
/** Bytes read at a time, and held in memory for one client. */
const chunkBytes = 256 * 1024;

/**
 * Answers with a kept video or a range of it, at the client's speed.
 * @throws {GatewayError} when the key has as many downloads as it may; any other error when the file cannot be read
 */
async function sendKept(
  services: Services,
  call: AuthenticatedCall,
  { kept, range, lines }: KeptContent,
): Promise<void> {
  try {
    if (call.accounted) return;
    call.validatedAt = performance.now();
    const refusal = services.downloads.take(call, keptVideos);
    if (refusal !== null) throw refusal;
    const part = range === null ? null : satisfiedRange(range, kept.bytes);
    if (range !== null && part === null) {
      refuseRange(services, call, `bytes */${kept.bytes}`, lines);
      return;
    }
    const { first, last } = part ?? { first: 0, last: kept.bytes - 1 };
    const all =
      `\r\ncontent-type: ${kept.contentType}\r\nx-content-type-options: nosniff${lines}` +
      (part === null ? '' : `\r\ncontent-range: bytes ${first}-${last}/${kept.bytes}`) +
      timingLine(call);
    if (call.exchange.method === 'HEAD' || last < first) {
      call.exchange.respondEmpty(200, all, kept.bytes);
      account(services, call, 'complete');
      return;
    }
    call.exchange.begin(part === null ? 200 : 206, all, last - first + 1);
    await sendBytes(services, call, kept, { first, last });
  } finally {
    kept.handle.close().catch((fault: unknown) => services.reportFault('promise', fault, call));
  }
}

async function sendBytes(
  services: Services,
  call: AuthenticatedCall,
  { handle }: KeptFile,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<void> {
  const { exchange } = call;
  let resumeSending = (): void => {};
  exchange.listener = {
    onDrained: () => resumeSending(),
    onClientGone: () => {
      account(services, call, 'client_gone');
      resumeSending();
    },
  };
  for (let at = first; at <= last; ) {
    const piece = Buffer.allocUnsafeSlow(Math.min(chunkBytes, last + 1 - at));
    const { bytesRead } = await handle.read(piece, 0, piece.length, at);
    if (call.accounted) return;
    if (bytesRead === 0) throw new Error('the file of a kept video is shorter than it was');
    at += bytesRead;
    const isTaken = exchange.write(piece.subarray(0, bytesRead));
    if (isTaken || at > last) continue;
    await new Promise<void>((resolve) => {
      resumeSending = resolve;
    });
    if (call.accounted) return;
  }
  exchange.end();
  account(services, call, 'complete');
}
