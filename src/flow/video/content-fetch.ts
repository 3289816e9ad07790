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
import type { Asking } from '../call.js';
import type { Services } from '../services.js';
import { fileHosts } from '../upstream/fetch-files.js';
import { oneOffHead } from '../upstream/head.js';
import { markedKey } from '../upstream/key-mark.js';
import type { ContentSource } from './content-source.js';

const mostRedirects = 3;
/** What a foreign server is told of the gateway. */
const fetchLines = joinLines(
  headerLine('accept', '*/*'),
  headerLine('accept-encoding', 'identity'),
  headerLine('user-agent', 'model-gateway'),
);

/** Whoever wants a content: the handler of each server that is asked for it. */
export interface ContentOwner extends UpstreamHandler, Guarded {
  onFault: Guarded['onFault'];
  /** A server is about to be asked. @returns why it may not be, or null */
  onAsking(origin: Origin): GatewayError | null;
  /** The content cannot be asked for. */
  onUnreached(error: GatewayError): void;
}

interface WantedContent {
  readonly asking: Pick<Asking, 'exchange' | 'running'>;
  readonly source: ContentSource;
  /** More header lines of each request. */
  readonly lines: HeadLines;
  /** The longest that one answer may take, in milliseconds. */
  readonly totalMs: number;
}

/** Asks for a content: at its upstream or where that says, and then wherever it is redirected to. */
export class ContentFetch {
  readonly #services: Services;
  readonly #wanted: WantedContent;
  readonly #owner: ContentOwner;
  /** Key that the upstream itself is asked with; null where none is. */
  readonly apiKey: string | null;
  #upstream: UpstreamExchange | null = null;
  #cancelReach: () => void = () => {};
  /** URL that is asked now; null while it is the upstream's own path. */
  #url: string | null = null;
  /** Addresses of its server that are asked where there is no connection to the present one. */
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

  /** The upstream itself is asked, where our account is known, and not a URL. */
  get isAtUpstream(): boolean {
    return this.#url === null;
  }

  /** See `UpstreamExchange.sentAt`. */
  get sentAt(): number {
    return this.#upstream?.sentAt ?? 0;
  }

  start(): void {
    const { source, asking, lines } = this.#wanted;
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
    this.#ask(upstream.origin, oneOffHead(asking, upstream, { ...request, apiKey }));
  }

  /** Asks for it at a URL, as if for the first time. */
  reach(url: string): void {
    this.#redirects = 0;
    this.#reach(url);
  }

  /** @returns whether an answer leads elsewhere: it is asked for there, or that is told to be once too often */
  follows(head: ResponseHead): boolean {
    const next = redirectTarget(this.#url ?? this.#ownUrl(), head);
    if (next === null) return false;
    this.cancel();
    if (++this.#redirects > mostRedirects)
      this.#owner.onUnreached(new GatewayError('upstream_error', 'The upstream redirects too many times.'));
    else this.#reach(next);
    return true;
  }

  /** @returns whether a server to which there was no connection is asked at another of its addresses */
  retries({ reason }: UpstreamFailure): boolean {
    const [next, ...others] = this.#others;
    if (next === undefined || (reason !== 'connect_failed' && reason !== 'connect_timeout')) return false;
    this.#askAt({ origin: next, others, path: this.#path });
    return true;
  }

  resume(): void {
    this.#upstream?.resume();
  }

  /** Gives up what is asked; nothing more of it is told. */
  cancel(): void {
    this.#cancelReach();
    this.#upstream?.cancel();
    this.release();
  }

  /** What is asked has ended, or may end as it does. */
  release(): void {
    this.#upstream = null;
  }

  #reach(url: string): void {
    const { asking, source } = this.#wanted;
    this.#url = url;
    const done = (reached: Reached | GatewayError): void => {
      if (reached instanceof GatewayError) this.#owner.onUnreached(reached);
      else this.#askAt(reached);
    };
    const hosts = fileHosts(asking, source.upstream);
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
    this.#ask(origin, head);
  }

  #ask(origin: Origin, head: HeadLines): void {
    const { asking, totalMs } = this.#wanted;
    const refusal = this.#owner.onAsking(origin);
    if (refusal !== null) {
      this.#owner.onUnreached(refusal);
      return;
    }
    this.#upstream = this.#services.upstream.send(
      origin,
      { method: 'GET', head, body: [], source: null, hasEffects: noEffects },
      { ...asking.running.snapshot.timeouts, totalMs },
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
