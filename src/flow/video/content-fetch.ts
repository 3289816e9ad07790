import { GatewayError, type Guarded, guard } from '../../errors.js';
import { noEffects } from '../../protocols/effects.js';
import type { Origin } from '../../upstream/origin.js';
import { type Reached, reachUrl, redirectTarget } from '../../upstream/remote-url.js';
import type {
  ResponseHead,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamHandler,
} from '../../upstream/types.js';
import { type HeadLines, headerLine, joinLines, requestLine } from '../../wire/head.js';
import { withQuery } from '../../wire/query.js';
import type { RequestSender } from '../call.js';
import type { Services } from '../services.js';
import { fileHosts } from '../upstream/fetch-files.js';
import { oneOffHead } from '../upstream/head.js';
import { markedKey } from '../upstream/key-mark.js';
import type { ContentSource } from './content-source.js';

const maxRedirects = 3;
/** Header lines sent to a server that is not the upstream itself. */
const fetchLines = joinLines(
  headerLine('accept', '*/*'),
  headerLine('accept-encoding', 'identity'),
  headerLine('user-agent', 'model-gateway'),
);

/** Receives a content; handles the exchange with each server that the fetch is sent to. */
export interface ContentOwner extends UpstreamHandler, Guarded {
  onFault: Guarded['onFault'];
  /** Called before a request is sent to a server. @returns why it may not be sent, or null */
  onAsking(origin: Origin): GatewayError | null;
  /** Called when the content cannot be requested. */
  onUnreached(error: GatewayError): void;
}

interface WantedContent {
  readonly sender: Pick<RequestSender, 'exchange' | 'running'>;
  readonly source: ContentSource;
  /** Additional header lines of each request. */
  readonly lines: HeadLines;
  /** Timeout of one answer in milliseconds. */
  readonly totalMs: number;
}

/** Requests a content from its upstream, or from the URL that the upstream named, and follows redirects. */
export class ContentFetch {
  readonly #services: Services;
  readonly #wanted: WantedContent;
  readonly #owner: ContentOwner;
  /** Key sent to the upstream itself; null if none is sent. */
  readonly apiKey: string | null;
  #upstream: UpstreamExchange | null = null;
  #cancelReach: () => void = () => {};
  /** URL of the current request; null while that goes to the upstream's own path. */
  #url: string | null = null;
  /** Further addresses of the current server, tried when a connection cannot be established. */
  #others: readonly Origin[] = [];
  #path = '';
  #redirects = 0;

  constructor(services: Services, wanted: WantedContent, owner: ContentOwner) {
    this.#services = services;
    this.#wanted = wanted;
    this.#owner = owner;
    const { source } = wanted;
    this.apiKey = source.kind === 'path' ? markedKey(source.upstream, source.credential) : null;
  }

  /** Whether the current request goes to the upstream itself, which knows our account, and not to a URL. */
  get isAtUpstream(): boolean {
    return this.#url === null;
  }

  /** See `UpstreamExchange.sentAt`. */
  get sentAt(): number {
    return this.#upstream?.sentAt ?? 0;
  }

  start(): void {
    const { source, sender, lines } = this.#wanted;
    if (source.kind === 'url') {
      this.reach(source.url);
      return;
    }
    const { upstream, path } = source;
    const { apiKey } = this;
    const request = {
      method: 'GET',
      path,
      contentType: null,
      protocol: 'video',
      lines,
      target: null,
    } as const;
    this.#fetch(upstream.origin, oneOffHead(sender, upstream, { ...request, apiKey }));
  }

  /** Requests the content at a URL, with the count of redirects reset. */
  reach(url: string): void {
    this.#redirects = 0;
    this.#reach(url);
  }

  /**
   * Follows a redirect, or reports one too many to the owner.
   * @returns whether the answer is a redirect
   */
  follows(head: ResponseHead): boolean {
    const next = redirectTarget(this.#url ?? this.#ownUrl(), head);
    if (next === null) return false;
    this.cancel();
    if (++this.#redirects > maxRedirects)
      this.#owner.onUnreached(new GatewayError('upstream_error', 'The upstream redirects too many times.'));
    else this.#reach(next);
    return true;
  }

  /**
   * Tries the next address of a server when a connection could not be established.
   * @returns whether another address is tried
   */
  retries({ reason }: UpstreamFailure): boolean {
    const [next, ...others] = this.#others;
    if (next === undefined || (reason !== 'connect_failed' && reason !== 'connect_timeout')) return false;
    this.#askAt({ origin: next, others, path: this.#path });
    return true;
  }

  resume(): void {
    this.#upstream?.resume();
  }

  /** Cancels the request in flight; no further callback follows. */
  cancel(): void {
    this.#cancelReach();
    this.#upstream?.cancel();
    this.release();
  }

  /** Forgets the request in flight without cancelling it. */
  release(): void {
    this.#upstream = null;
  }

  #reach(url: string): void {
    const { sender, source } = this.#wanted;
    this.#url = url;
    const done = (reached: Reached | GatewayError): void => {
      if (reached instanceof GatewayError) this.#owner.onUnreached(reached);
      else this.#askAt(reached);
    };
    const hosts = fileHosts(sender, source.upstream);
    this.#cancelReach = reachUrl(url, hosts, guard('upstream', this.#owner, done));
  }

  #askAt({ origin, others, path }: Reached): void {
    const { lines } = this.#wanted;
    this.#others = others;
    this.#path = path;
    let head: HeadLines;
    try {
      head = joinLines(requestLine('GET', path), headerLine('host', origin.authority), fetchLines, lines);
    } catch (cause) {
      this.#owner.onUnreached(
        new GatewayError('upstream_error', 'The upstream named a file with an invalid URL.', { cause }),
      );
      return;
    }
    this.#fetch(origin, head);
  }

  #fetch(origin: Origin, head: HeadLines): void {
    const { sender, totalMs } = this.#wanted;
    const refusal = this.#owner.onAsking(origin);
    if (refusal !== null) {
      this.#owner.onUnreached(refusal);
      return;
    }
    this.#upstream = this.#services.upstream.send(
      origin,
      { method: 'GET', head, body: [], source: null, hasEffects: noEffects },
      { ...sender.running.snapshot.timeouts, totalMs },
      this.#owner,
    );
  }

  #ownUrl(): string {
    const { source } = this.#wanted;
    const { secure, authority } = source.upstream.origin;
    const path =
      source.kind === 'path'
        ? withQuery(source.upstream.basePath + source.path, source.upstream.baseQuery)
        : '/';
    return `${secure ? 'https' : 'http'}://${authority}${path}`;
  }
}
