import type { HttpRequest } from 'uWebSockets.js';
import { type HeadLines, headerLineOrNull, isWritable, joinLines, noLines } from '../wire/head.js';
import {
  forwardedNames,
  type HeaderReader,
  listedHeaders,
  readerByBeginning,
  readerOf,
} from '../wire/passed-headers.js';

/** Real vendor words beside the neutral ones, as far as header names need them. */
export interface HeaderWords {
  readonly vendorc: readonly string[];
  readonly vendorg: readonly string[];
  /** Names of headers that some upstreams get beside those that all get, in lower case. */
  readonly passed?: readonly string[];
}

const Slot = {
  Authorization: 0,
  ApiKey: 1,
  VendorgKey: 2,
  VendorcVersion: 3,
  ContentType: 4,
  ContentLength: 5,
  ContentEncoding: 6,
  TransferEncoding: 7,
  Upgrade: 8,
  Forwarded: 9,
  OpenaiBeta: 10,
  VendorcBeta: 11,
  Host: 12,
  Range: 13,
  IfRange: 14,
  IfNoneMatch: 15,
  IdempotencyKey: 16,
  SocketKey: 17,
  SocketProtocols: 18,
  Origin: 19,
  RequestedMethod: 20,
  RequestedHeaders: 21,
  GatewayTarget: 22,
  ForwardedFor: 23,
  ForwardedProto: 24,
  ForwardedHost: 25,
  Passed: 26,
  Shared: 27,
  Openai: 28,
  Anthropic: 29,
  Google: 30,
  UserAgent: 31,
  AzureKey: 32,
  Connection: 33,
} as const;
type Slot = (typeof Slot)[keyof typeof Slot];

const readerSlots: Readonly<Record<HeaderReader, Slot>> = {
  shared: Slot.Shared,
  openai: Slot.Openai,
  anthropic: Slot.Anthropic,
  google: Slot.Google,
};

/** A number by which to look for a name. Its letters at three places tell most names apart, and cost less than its hash. */
function markOf(name: string): number {
  const last = name.length - 1;
  return last + name.charCodeAt(0) * 7 + name.charCodeAt(last >> 1) * 13 + name.charCodeAt(last) * 31;
}

/** What a place of the table remembers of the last line that was made there. */
class LastLine {
  value = '';
  line: HeadLines = noLines;
  before: HeadLines = noLines;
  both: HeadLines = noLines;
}

/** Which header names a server reads, by lower-case name; everything else is skipped unread. */
export class HeaderSlots {
  readonly #names: string[];
  readonly #slots: Uint8Array;
  readonly #lasts: LastLine[];
  /** Of places in the table, a power of two: at least three of four are empty. */
  readonly #mask: number;

  constructor(slots: ReadonlyMap<string, Slot>) {
    const places = 2 ** Math.ceil(Math.log2(slots.size * 4 + 4));
    this.#names = Array.from({ length: places }, () => '');
    this.#slots = new Uint8Array(places);
    this.#lasts = Array.from({ length: places }, () => new LastLine());
    this.#mask = places - 1;
    for (const [name, slot] of slots) {
      let at = markOf(name) & this.#mask;
      while (this.#names[at] !== '') at = (at + 1) & this.#mask;
      this.#names[at] = name;
      this.#slots[at] = slot;
    }
  }

  /** @returns the place of a name, or -1 for one that is not read */
  find(name: string): number {
    for (let at = markOf(name) & this.#mask; ; at = (at + 1) & this.#mask) {
      const known = this.#names[at];
      if (known === '') return -1;
      if (known === name) return at;
    }
  }

  slotAt(place: number): Slot {
    return this.#slots[place] as Slot;
  }

  /**
   * Lines, and behind them that of the header at a place. A client sends most of its headers with every request, one
   * after the other: to see that they are those of the request before costs a third of checking and joining them.
   * @returns null for a value that cannot be written
   */
  withLine(place: number, before: HeadLines, value: string): HeadLines | null {
    const last = this.#lasts[place] as LastLine;
    if (last.value === value && last.line !== noLines) {
      if (last.before === before) return last.both;
    } else {
      const line = headerLineOrNull(this.#names[place] as string, value);
      if (line === null) return null;
      last.value = value;
      last.line = line;
    }
    last.before = before;
    last.both = joinLines(before, last.line);
    return last.both;
  }
}

/**
 * @param behindProxies the headers of proxies are read, too
 * @returns the header names to read, with the vendor words of the running config beside the neutral names
 */
export function headerSlots(words: HeaderWords, behindProxies: boolean): HeaderSlots {
  const slots = new Map<string, Slot>([
    ['authorization', Slot.Authorization],
    ['x-api-key', Slot.ApiKey],
    ['api-key', Slot.AzureKey],
    ['content-type', Slot.ContentType],
    ['content-length', Slot.ContentLength],
    ['content-encoding', Slot.ContentEncoding],
    ['transfer-encoding', Slot.TransferEncoding],
    ['upgrade', Slot.Upgrade],
    ['connection', Slot.Connection],
    ['openai-beta', Slot.OpenaiBeta],
    ['host', Slot.Host],
    ['range', Slot.Range],
    ['if-range', Slot.IfRange],
    ['if-none-match', Slot.IfNoneMatch],
    ['idempotency-key', Slot.IdempotencyKey],
    ['sec-websocket-key', Slot.SocketKey],
    ['sec-websocket-protocol', Slot.SocketProtocols],
    ['x-gateway-target', Slot.GatewayTarget],
    ['origin', Slot.Origin],
    ['access-control-request-method', Slot.RequestedMethod],
    ['access-control-request-headers', Slot.RequestedHeaders],
  ]);
  if (behindProxies) {
    slots.set('x-forwarded-for', Slot.ForwardedFor);
    slots.set('x-forwarded-proto', Slot.ForwardedProto);
    slots.set('x-forwarded-host', Slot.ForwardedHost);
  }
  for (const name of forwardedNames) slots.set(name, name === 'user-agent' ? Slot.UserAgent : Slot.Forwarded);
  for (const word of ['vendorc', ...words.vendorc]) {
    slots.set(`${word}-version`, Slot.VendorcVersion);
    slots.set(`${word}-beta`, Slot.VendorcBeta);
  }
  for (const word of ['vendorg', ...words.vendorg]) slots.set(`x-${word}-api-key`, Slot.VendorgKey);
  for (const [name, reader] of listedHeaders) if (!slots.has(name)) slots.set(name, readerSlots[reader]);
  for (const name of words.passed ?? []) {
    if (slots.has(name)) continue;
    const reader = readerOf(name);
    slots.set(name, reader === null ? Slot.Passed : readerSlots[reader]);
  }
  return new HeaderSlots(slots);
}

/** What the gateway reads of a request's head, copied while uWS still holds it. Absent headers are empty strings. */
export class RequestHead {
  query = '';
  authorization = '';
  apiKey = '';
  azureKey = '';
  vendorgKey = '';
  vendorcVersion = '';
  contentType = '';
  contentEncoding = '';
  connection = '';
  upgrade = '';
  host = '';
  // Of the next four the first line counts, where there are several.
  range = '';
  ifRange = '';
  ifNoneMatch = '';
  /** Upstreams get these two as well. */
  idempotencyKey = '';
  userAgent = '';
  /** `sec-websocket-key` and the subprotocols on offer (RFC 6455 section 4.1); one of these may hold a key. */
  socketKey = '';
  socketProtocols = '';
  /** Of a page in a browser, and what it asks for with a preflight. */
  origin = '';
  requestedMethod = '';
  requestedHeaders = '';
  /** Targets that the request wants or does not: `x-gateway-target`. */
  gatewayTarget = '';
  /**
   * The connection's address as bytes, and what proxies say of the client (`x-forwarded-*`): read only where the config
   * wants it, since the address costs a system call, and worth only as much as the proxy is trusted.
   */
  peer: ArrayBuffer | null = null;
  forwardedFor = '';
  forwardedProto = '';
  forwardedHost = '';
  /** Header lines of every answer to this request, CRLF before each. */
  answerLines = '';
  /** Features that the client asks its vendor for, as a header value; upstreams of that vendor alone get them. */
  openaiBeta = '';
  vendorcBeta = '';
  /** Header lines for an upstream. */
  forwarded: HeadLines = noLines;
  /** The same for those upstreams alone whose config names them. */
  passed: HeadLines = noLines;
  /** The same for upstreams of one vendor's protocols, and for those of OpenAI's and Anthropic's: see `HeaderReader`. */
  sharedLines: HeadLines = noLines;
  openaiLines: HeadLines = noLines;
  anthropicLines: HeadLines = noLines;
  googleLines: HeadLines = noLines;
  /** How many lines for upstreams it has. */
  lineCount = 0;
  /** Name of a header with a meaning for upstreams whose value cannot be written to one; empty where there is none. */
  unwritable = '';
  /** Bytes announced by `content-length`, or -1. */
  contentLength = -1;
  chunked = false;
  /**
   * Why the body's framing (RFC 9112 section 6.3) or the host that is meant (section 3.2) cannot be trusted, or null.
   * Such a connection is closed.
   */
  framingFault: string | null = null;
}

// uWS calls back once a header, synchronously: one callback for the process with its subject beside it spares
// a closure for every request.
let subject = new RequestHead();
let slotsInUse = new HeaderSlots(new Map());

function onHeader(name: string, value: string): void {
  const place = slotsInUse.find(name);
  if (place === -1) {
    readByBeginning(subject, name, value);
    return;
  }
  const head = subject;
  const slot = slotsInUse.slotAt(place);
  switch (slot) {
    case Slot.Authorization:
      head.authorization = value;
      break;
    case Slot.ApiKey:
    case Slot.AzureKey:
    case Slot.VendorgKey:
      readKey(head, slot, value);
      break;
    case Slot.ContentType:
      head.contentType = value;
      break;
    case Slot.ContentEncoding:
      head.contentEncoding = value;
      break;
    case Slot.Upgrade:
      head.upgrade = value;
      break;
    case Slot.Connection:
      head.connection = value;
      break;
    case Slot.VendorcVersion:
    case Slot.OpenaiBeta:
    case Slot.VendorcBeta:
      if (isWritable(value)) readForVendor(head, slot, value);
      else head.unwritable = name;
      break;
    case Slot.ContentLength:
      readContentLength(head, value);
      break;
    case Slot.TransferEncoding:
      readTransferEncoding(head, value);
      break;
    case Slot.Host:
      if (head.host === '') head.host = value;
      else head.framingFault = 'The request has more than one host header.';
      break;
    case Slot.Range:
      if (head.range === '') head.range = value;
      break;
    case Slot.IfRange:
      if (head.ifRange === '') head.ifRange = value;
      break;
    case Slot.IfNoneMatch:
      if (head.ifNoneMatch === '') head.ifNoneMatch = value;
      break;
    case Slot.IdempotencyKey:
      if (head.idempotencyKey === '') head.idempotencyKey = value;
      break;
    case Slot.SocketKey:
      head.socketKey = value;
      break;
    case Slot.SocketProtocols:
      head.socketProtocols = joined(head.socketProtocols, value);
      break;
    case Slot.GatewayTarget:
      head.gatewayTarget = joined(head.gatewayTarget, value);
      break;
    case Slot.Origin:
    case Slot.RequestedMethod:
    case Slot.RequestedHeaders:
      readOfPage(head, slot, value);
      break;
    case Slot.ForwardedFor:
    case Slot.ForwardedProto:
    case Slot.ForwardedHost:
      readOfProxy(head, slot, value);
      break;
    case Slot.UserAgent:
      head.userAgent = value;
      readForUpstreams(head, slot, place, value);
      break;
    default:
      readForUpstreams(head, slot, place, value);
  }
}

function readKey(head: RequestHead, slot: Slot, value: string): void {
  if (slot === Slot.ApiKey) head.apiKey = value;
  else if (slot === Slot.AzureKey) head.azureKey = value;
  else head.vendorgKey = value;
}

function readOfPage(head: RequestHead, slot: Slot, value: string): void {
  if (slot === Slot.Origin) head.origin = value;
  else if (slot === Slot.RequestedMethod) head.requestedMethod = value;
  else head.requestedHeaders = value;
}

function readOfProxy(head: RequestHead, slot: Slot, value: string): void {
  if (slot === Slot.ForwardedFor) head.forwardedFor = joined(head.forwardedFor, value);
  else if (slot === Slot.ForwardedProto) head.forwardedProto = joined(head.forwardedProto, value);
  else head.forwardedHost = joined(head.forwardedHost, value);
}

/** An upstream is sent no longer value of a client's, which only tells of it, and no more lines. */
const longestValue = 8192;
const mostLines = 64;

/** Lines that only tell of the caller: one that cannot be read is to be ignored (W3C Trace Context section 3.2). */
function readForUpstreams(head: RequestHead, slot: Slot, place: number, value: string): void {
  if (value.length > longestValue || head.lineCount === mostLines) return;
  const lines = slotsInUse.withLine(place, linesIn(head, slot), value);
  if (lines !== null) setLines(head, slot, lines);
}

/** The same of a header that is told by how its name begins. */
function readByBeginning(head: RequestHead, name: string, value: string): void {
  const reader = readerByBeginning(name);
  if (reader === null || value.length > longestValue || head.lineCount === mostLines) return;
  const line = headerLineOrNull(name, value);
  const slot = readerSlots[reader];
  if (line !== null) setLines(head, slot, joinLines(linesIn(head, slot), line));
}

function linesIn(head: RequestHead, slot: Slot): HeadLines {
  switch (slot) {
    case Slot.Shared:
      return head.sharedLines;
    case Slot.Openai:
      return head.openaiLines;
    case Slot.Anthropic:
      return head.anthropicLines;
    case Slot.Google:
      return head.googleLines;
    case Slot.Passed:
      return head.passed;
    default:
      return head.forwarded;
  }
}

function setLines(head: RequestHead, slot: Slot, lines: HeadLines): void {
  head.lineCount++;
  switch (slot) {
    case Slot.Shared:
      head.sharedLines = lines;
      break;
    case Slot.Openai:
      head.openaiLines = lines;
      break;
    case Slot.Anthropic:
      head.anthropicLines = lines;
      break;
    case Slot.Google:
      head.googleLines = lines;
      break;
    case Slot.Passed:
      head.passed = lines;
      break;
    default:
      head.forwarded = lines;
  }
}

/** What means something to the vendor of an upstream, and can be written to one. */
function readForVendor(head: RequestHead, slot: Slot, value: string): void {
  if (slot === Slot.VendorcVersion) head.vendorcVersion = value;
  else if (slot === Slot.OpenaiBeta) head.openaiBeta = joined(head.openaiBeta, value);
  else head.vendorcBeta = joined(head.vendorcBeta, value);
}

function readTransferEncoding(head: RequestHead, value: string): void {
  if (head.chunked) head.framingFault = 'The request has more than one transfer-encoding header.';
  else if (value.toLowerCase() !== 'chunked')
    head.framingFault = 'The only transfer-encoding that is understood is chunked.';
  head.chunked = true;
}

/** Several header lines of one name are one list (RFC 9110 section 5.3). */
function joined(before: string, value: string): string {
  return before === '' ? value : `${before}, ${value}`;
}

/** uWS takes the first of several lengths and acts on it; another hop may take the second, so none is trusted. */
function readContentLength(head: RequestHead, value: string): void {
  if (head.contentLength !== -1) {
    head.framingFault = 'The request has more than one content-length header.';
    return;
  }
  let length = 0;
  for (let i = 0; i < value.length; i++) {
    const digit = value.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) length = Number.NaN;
    else length = length * 10 + digit;
  }
  if (value.length === 0 || !Number.isSafeInteger(length)) {
    head.framingFault = 'The content-length header is not a number.';
    length = 0;
  }
  head.contentLength = length;
}

/** Copies what is needed of `request`, which uWS takes back as soon as its handler returns. */
export function readHead(request: HttpRequest, slots: HeaderSlots): RequestHead {
  const head = new RequestHead();
  subject = head;
  slotsInUse = slots;
  request.forEach(onHeader);
  head.query = request.getQuery() ?? '';
  if (head.chunked && head.contentLength !== -1 && head.framingFault === null)
    head.framingFault = 'The request has both content-length and transfer-encoding.';
  return head;
}
