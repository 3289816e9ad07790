import { type FaultPlace, type GatewayError, guard } from '../errors.js';
import { foreignRequestLine, type HeadLines, headerLine, joinLines } from '../wire/head.js';
import type { Origin } from './origin.js';
import { type Reached, Refusal, type RemoteOptions, reachUrl, redirectTarget } from './remote-url.js';
import type {
  Deadlines,
  ResponseHead,
  UpstreamClient,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamHandler,
} from './types.js';

const maxRedirects = 3;
/** Milliseconds to connect to one address of a server that has others, at first. */
const connectMs = 1000;
/** Header lines sent to a server that is not an upstream. */
const fetchLines = joinLines(
  headerLine('accept', '*/*'),
  headerLine('accept-encoding', 'identity'),
  headerLine('user-agent', 'model-gateway'),
);

/** Receives the answer with a file, behind all redirects. */
export interface RemoteOwner extends UpstreamHandler {
  /** Called before a request is sent to a server. @returns why it may not be sent, or null */
  onAsking?(origin: Origin): GatewayError | null;
  /** Called when the file cannot be requested. */
  onUnreached(error: GatewayError | Refusal): void;
}

interface RemoteRequest {
  /** Where the file may be fetched from. */
  readonly hosts: RemoteOptions;
  /** Additional header lines of each request. */
  readonly lines: HeadLines;
  /** Timeouts of each answer. */
  readonly deadlines: Deadlines;
}

/**
 * Requests a file from a URL that a client or an upstream has named, and follows redirects (at most 3). Each URL is
 * checked, and the connection goes to an address that was checked. Nothing but a refusal of `onAsking` is reported before
 * its methods have returned.
 */
export class RemoteFetch implements UpstreamHandler {
  readonly #client: UpstreamClient;
  readonly #request: RemoteRequest;
  readonly #owner: RemoteOwner;
  #exchange: UpstreamExchange | null = null;
  #cancelReach: () => void = () => {};
  /** URL of the current request. */
  #url = '';
  #isAtUpstream = false;
  /** Further addresses of the current server, tried when a connection cannot be established. */
  #others: Origin[] = [];
  /** Those of them that have not connected within `connectMs`, tried again when no other is left. */
  #slow: Origin[] = [];
  /** The address that is being asked, if it has `connectMs`; else null. */
  #hurried: Origin | null = null;
  #path = '';
  #redirects = 0;

  constructor(client: UpstreamClient, request: RemoteRequest, owner: RemoteOwner) {
    this.#client = client;
    this.#request = request;
    this.#owner = owner;
  }

  /** Whether the current request is the one of `askUpstream`, and not one for a URL. */
  get isAtUpstream(): boolean {
    return this.#isAtUpstream;
  }

  /** See `UpstreamExchange.sentAt`. */
  get sentAt(): number {
    return this.#exchange?.sentAt ?? 0;
  }

  /** Requests the file from an upstream that keeps it. @param url of the request, for redirects */
  askUpstream(origin: Origin, head: HeadLines, url: string): void {
    this.#url = url;
    this.#isAtUpstream = true;
    this.#send(origin, head, this.#request.deadlines);
  }

  /** Requests the file at a URL, with the count of redirects reset. */
  fetch(url: string): void {
    this.#redirects = 0;
    this.#reach(url);
  }

  onHead(head: ResponseHead): void {
    const next = redirectTarget(this.#url, head);
    if (next === null) {
      this.onAnswer(head);
      return;
    }
    this.cancel();
    if (++this.#redirects > maxRedirects) this.#owner.onUnreached(new Refusal('it redirects too many times'));
    else this.#reach(next);
  }

  /** Called with the head of the answer behind all redirects. */
  onAnswer(head: ResponseHead): void {
    this.#owner.onHead(head);
  }

  onData(chunk: Buffer): boolean {
    return this.#owner.onData(chunk);
  }

  onEnd(): void {
    this.#owner.onEnd();
  }

  onFailure(failure: UpstreamFailure): void {
    const { reason } = failure;
    if (reason === 'connect_timeout' && this.#hurried !== null) this.#slow.push(this.#hurried);
    const isUnconnected = reason === 'connect_failed' || reason === 'connect_timeout';
    const next = isUnconnected ? (this.#others.shift() ?? this.#slow.shift()) : undefined;
    if (next === undefined) this.#owner.onFailure(failure);
    else this.#askAt(next);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#owner.onFault(where, fault);
  }

  resume(): void {
    this.#exchange?.resume();
  }

  /** Cancels the request in flight; no further callback follows. */
  cancel(): void {
    this.#cancelReach();
    this.#exchange?.cancel();
    this.release();
  }

  /** Forgets the request in flight without cancelling it. */
  release(): void {
    this.#exchange = null;
  }

  #reach(url: string): void {
    this.#url = url;
    this.#isAtUpstream = false;
    const done = (reached: Reached | Refusal): void => {
      if (reached instanceof Refusal) {
        this.#owner.onUnreached(reached);
        return;
      }
      this.#others = [...reached.others];
      this.#slow = [];
      this.#path = reached.path;
      this.#askAt(reached.origin);
    };
    this.#cancelReach = reachUrl(url, this.#request.hosts, guard('upstream', this.#owner, done));
  }

  #askAt(origin: Origin): void {
    const { lines, deadlines } = this.#request;
    let head: HeadLines;
    try {
      head = joinLines(
        foreignRequestLine('GET', this.#path),
        headerLine('host', origin.authority),
        fetchLines,
        lines,
      );
    } catch (cause) {
      this.#owner.onUnreached(new Refusal('the URL is not valid', { cause }));
      return;
    }
    const isLast = this.#others.length === 0 || deadlines.connectMs < connectMs;
    this.#hurried = isLast ? null : origin;
    this.#send(origin, head, isLast ? deadlines : { ...deadlines, connectMs });
  }

  #send(origin: Origin, head: HeadLines, deadlines: Deadlines): void {
    const refusal = this.#owner.onAsking?.(origin) ?? null;
    if (refusal !== null) {
      this.#owner.onUnreached(refusal);
      return;
    }
    const request = { method: 'GET', head, body: [], source: null, hasEffects: () => false };
    this.#exchange = this.#client.send(origin, request, deadlines, this);
  }
}
