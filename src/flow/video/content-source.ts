import { statusError } from '../../attempts/reported-error.js';
import type { OwnSecrets, Upstream } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { Beginning } from '../../stream/gather.js';
import { RemoteFetch, type RemoteOwner } from '../../upstream/remote-fetch.js';
import { Refusal } from '../../upstream/remote-url.js';
import type { ResponseHead } from '../../upstream/types.js';
import { upstreamFormats } from '../../video/formats.js';
import type { VideoTask, VideoVariant } from '../../video/task.js';
import type { HeadLines } from '../../wire/head.js';
import { looksLikeText } from '../../wire/plain-text.js';
import { withQuery } from '../../wire/query.js';
import { type ByteRange, parseContentRange, type SatisfiedRange, satisfiedRange } from '../../wire/range.js';
import { beginningError } from '../answer/content.js';
import type { Call, RequestSender } from '../call.js';
import { refuse } from '../refuse.js';
import type { Services } from '../services.js';
import { fileHosts } from '../upstream/fetch-files.js';
import { oneOffHead } from '../upstream/head.js';
import { markedKey } from '../upstream/key-mark.js';
import { upstreamOf } from './answer.js';

/** Where a content is: at the upstream itself, or at a URL that the upstream named. */
export type ContentSource =
  | {
      readonly kind: 'path';
      readonly upstream: Upstream;
      /** Relative to the upstream's base URL. */
      readonly path: string;
      /** The model's name at the upstream. */
      readonly model: string;
      readonly credential: string | null;
    }
  | {
      readonly kind: 'url';
      readonly upstream: Upstream;
      readonly url: string;
      /** Task by which the upstream can be polled for a new URL. */
      readonly taskId: string;
    };

interface WantedContent {
  readonly sender: Pick<RequestSender, 'exchange' | 'running'>;
  readonly source: ContentSource;
  /** Additional header lines of each request. */
  readonly lines: HeadLines;
  /** Timeout of one answer in milliseconds. */
  readonly totalMs: number;
}

/** Receives a content. */
export interface ContentOwner extends RemoteOwner {
  /** Called when the content may not be passed on (any further): it is an error or a web page, or contains one of our keys. */
  onUnfit(error: GatewayError): void;
}

/**
 * Requests a content from its upstream, or from the URL that the upstream named. An answer with a success status is held back
 * until its first bytes are known to be those of a video.
 */
export class ContentFetch extends RemoteFetch {
  readonly #wanted: WantedContent;
  readonly #owner: ContentOwner;
  /** Head of the answer that is held back. */
  #held: ResponseHead | null = null;
  /** Null for an error answer. */
  #beginning: Beginning | null = null;
  /** Key sent to the upstream itself; null if none is sent. */
  readonly apiKey: string | null;

  constructor(services: Services, wanted: WantedContent, owner: ContentOwner) {
    const { sender, source, lines, totalMs } = wanted;
    const hosts = fileHosts(sender, source.upstream);
    const deadlines = { ...sender.running.snapshot.timeouts, totalMs };
    super(services.upstream, { hosts, lines, deadlines }, owner);
    this.#wanted = wanted;
    this.#owner = owner;
    this.apiKey = source.kind === 'path' ? markedKey(source.upstream, source.credential) : null;
  }

  start(): void {
    const { source, sender, lines } = this.#wanted;
    if (source.kind === 'url') {
      this.fetch(source.url);
      return;
    }
    const { upstream, path } = source;
    const { origin, basePath, baseQuery } = upstream;
    const request = { method: 'GET', path, contentType: null, protocol: 'video', target: null } as const;
    const head = oneOffHead(sender, upstream, { ...request, lines, apiKey: this.apiKey });
    const url = `${origin.secure ? 'https' : 'http'}://${origin.authority}${withQuery(basePath + path, baseQuery)}`;
    this.askUpstream(origin, head, url);
  }

  override onAnswer(head: ResponseHead): void {
    const isGood = head.status === 200 || head.status === 206;
    this.#held = isGood ? head : null;
    this.#beginning = isGood ? new Beginning(this.#secrets) : null;
    if (!isGood) this.#owner.onHead(head);
  }

  override onData(chunk: Buffer): boolean {
    const bytes = this.#held === null ? chunk : (this.#beginning?.add(chunk) ?? null);
    return bytes === null || this.#pass(bytes);
  }

  override onEnd(): void {
    if (this.#held !== null && this.#beginning !== null) this.#pass(this.#beginning.rest());
    this.#owner.onEnd();
  }

  get #secrets(): OwnSecrets {
    return this.#wanted.source.upstream.secrets;
  }

  #pass(bytes: Buffer): boolean {
    const head = this.#held;
    this.#held = null;
    const atStart =
      head === null ? null : (beginningError(bytes, true, this.#secrets) ?? otherThanVideo(head, bytes));
    const failure = atStart ?? this.#beginning?.failureIn(bytes) ?? null;
    if (failure !== null) {
      this.cancel();
      this.#owner.onUnfit(failure);
      return true;
    }
    if (head !== null) this.#owner.onHead(head);
    return this.#owner.onData(bytes);
  }
}

/** The error of a content that cannot be requested. */
export function unreachedError(error: GatewayError | Refusal): GatewayError {
  if (!(error instanceof Refusal)) return error;
  return new GatewayError(
    'upstream_error',
    `The upstream named a file that cannot be fetched: ${error.message}.`,
    {
      cause: error,
    },
  );
}

const nothing = Buffer.alloc(0);
/** Bytes at the start of an answer in which a page or JSON has to begin. */
const startWithin = 256;
/** Fewer bytes may look like text by chance, whatever their content type. */
const leastText = 32;
/** Content types of a login page, an object store's error, or an API that answers every request with 200. */
const textType = /^(?:text\/|application\/(?:json|xml|xhtml|problem))/i;
/** Content types passed to a client: none that a browser would run scripts from. */
export const mediaType = /^(?:video\/[\w.+-]+|image\/(?:png|jpeg|gif|webp|avif))$/i;
const pageStart = /^(?:\xef\xbb\xbf)?\s*[<{[]/;

/** Returns null if an answer may be a video. @param first its first bytes, or all of it if it is short */
function otherThanVideo(head: ResponseHead, first: Buffer): GatewayError | null {
  const isFromStart = head.status === 200 || head.get('content-range')?.startsWith('bytes 0-') === true;
  const isPage = isFromStart && pageStart.test(first.toString('latin1', 0, startWithin));
  const isText = first.length >= leastText && looksLikeText(first) && textType.test(head.contentType ?? '');
  if (!isPage && !isText) return null;
  return new GatewayError('upstream_error', 'The upstream answered with something other than a video.');
}

/** Returns why a file server's answer cannot be served to the client, or null. */
export function problemOf(head: ResponseHead, range: ByteRange | null): GatewayError | null {
  const { status } = head;
  if (status === 404 || status === 410)
    return new GatewayError('not_found', 'The upstream no longer has this video.');
  if (status === 429 || status === 503) return statusError(head, nothing);
  if (status !== 200 && status !== 206)
    return new GatewayError('upstream_error', `The upstream answered with status ${status} for the video.`);
  const coding = head.get('content-encoding');
  if (coding !== null && coding.toLowerCase() !== 'identity')
    return new GatewayError('upstream_error', 'The upstream used an unknown content-encoding for the video.');
  if (status === 200) return null;
  const part = parseContentRange(head.get('content-range'));
  if (range === null || part === null || !isAsked(range, part))
    return new GatewayError('upstream_error', 'The upstream sent a part that was not requested.');
  return isWhole(head, part)
    ? null
    : new GatewayError('upstream_error', 'The upstream sent a different part than it announced.');
}

/** A part may end early or late, but must begin where the range does. For a suffix, that follows from the length. */
function isAsked(
  range: ByteRange,
  { first, last, length }: SatisfiedRange & { readonly length: number },
): boolean {
  if (!('suffix' in range)) return first === range.first;
  const satisfied = length === -1 ? null : satisfiedRange(range, length);
  return satisfied === null ? length === -1 : first === satisfied.first && last === satisfied.last;
}

/**
 * Whether a part is as long as its `content-range` says. Without a content length it has to be chunked: a length that
 * was removed belonged to a part of the compressed video.
 */
function isWhole(head: ResponseHead, { first, last }: SatisfiedRange): boolean {
  const { contentLength } = head;
  if (contentLength === -1) return head.get('transfer-encoding') !== null;
  return contentLength === last - first + 1;
}

/** @throws {GatewayError} `not_found` when there is nothing to fetch */
export function sourceOf(call: Pick<Call, 'running'>, task: VideoTask, variant: VideoVariant): ContentSource {
  const upstream = upstreamOf(call, task);
  if (upstream === null)
    throw new GatewayError('not_found', 'The upstream that made this video is no longer configured.');
  const path = upstreamFormats[task.upstream.format].content(task, variant.name);
  if (path !== null) {
    const { model, credential } = task.upstream;
    return { kind: 'path', upstream, path, model, credential };
  }
  const url = variant.name === 'video' ? task.result?.url : null;
  if (url === null || url === undefined) {
    throw new GatewayError('not_found', `The upstream has no ${variant.name} of this video.`, {
      param: variant.name === 'video' ? null : 'variant',
    });
  }
  return { kind: 'url', upstream, url, taskId: task.id };
}

/**
 * Refuses a call whose range lies outside the video.
 * @param contentRange the upstream's `content-range`, which states the length, or null
 * @param more header lines of the video, each preceded by CRLF
 */
export function refuseRange(services: Services, call: Call, contentRange: string | null, more: string): void {
  const isTold = contentRange !== null && /^bytes \*\/\d+$/.test(contentRange);
  const length = isTold ? `\r\ncontent-range: ${contentRange}` : '';
  refuse(services, call, new GatewayError('range_not_satisfiable'), null, length + more);
}
