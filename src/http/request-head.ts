import type { HttpRequest } from 'uWebSockets.js';
import { gatewaysIn, loopHeader, passedGateways } from '../wire/gateway-loop.js';
import {
  fieldsOfConnection,
  type HeadLines,
  headerLineOrNull,
  isWritable,
  joinLines,
  linesWhere,
  noLines,
} from '../wire/head.js';
import {
  forwardedNames,
  type HeaderReader,
  listedHeaders,
  readerByBeginning,
  readerOf,
} from '../wire/passed-headers.js';

/** Vendors' real words that may appear in header names, beside the neutral ones, and further header names. */
export interface HeaderWords {
  readonly vendorc: readonly string[];
  readonly vendorg: readonly string[];
  /** Names in lower case of headers that are also passed to the upstreams whose config names them. */
  readonly passed: readonly string[];
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
  Loop: 8,
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

/**
 * Hash of a header name. Its length and three of its letters distinguish most names, and cost less than a full hash.
 */
function markOf(name: string): number {
  const last = name.length - 1;
  return last + name.charCodeAt(0) * 7 + name.charCodeAt(last >> 1) * 13 + name.charCodeAt(last) * 31;
}

/** The last header line that was made at a place of the table. */
class LastLine {
  value = '';
  line: HeadLines = noLines;
  before: HeadLines = noLines;
  both: HeadLines = noLines;
}

/**
 * Hash table of the header names that a server reads, in lower case. Other headers are skipped without reading them.
 */
export class HeaderSlots {
  readonly #names: string[];
  readonly #slots: Uint8Array;
  readonly #lasts: LastLine[];
  /** Number of places minus one. The number is a power of two, and at least three of four places are empty. */
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

  /** @returns the place of a name, or -1 if it is not read */
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
   * Appends the line of the header at a place to other lines. A client sends most of its headers with every request, in
   * the same order. Recognising those of the previous request costs a third of checking and joining them.
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
 * Returns the header names to read, with the vendor words of the running config beside the neutral names.
 * @param behindProxies whether to read the headers of proxies, too
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
    ['connection', Slot.Connection],
    [loopHeader, Slot.Loop],
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
  for (const name of words.passed) {
    if (slots.has(name)) continue;
    const reader = readerOf(name);
    slots.set(name, reader === null ? Slot.Passed : readerSlots[reader]);
  }
  return new HeaderSlots(slots);
}

/**
 * The part of a request's head that the gateway reads, copied while uWS still holds it. Absent headers are empty
 * strings.
 */
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
  /** The first `connection` line is as long as `close`: uWS takes it for that. */
  isToldToClose = false;
  host = '';
  // If one of the next four headers has several lines, the first counts.
  range = '';
  ifRange = '';
  ifNoneMatch = '';
  /** These two are also passed to upstreams. */
  idempotencyKey = '';
  userAgent = '';
  /** `sec-websocket-key` and the offered subprotocols (RFC 6455 section 4.1). A subprotocol may contain an API key. */
  socketKey = '';
  socketProtocols = '';
  /** Origin of a page in a browser, and the method and headers that a preflight requests for it. */
  origin = '';
  requestedMethod = '';
  requestedHeaders = '';
  /** Targets that the request requires or excludes: `x-gateway-target`. */
  gatewayTarget = '';
  /**
   * The connection's address as bytes, and the `x-forwarded-*` headers of proxies. Read only if the config names
   * trusted proxies, since the address costs a system call. The headers are only as reliable as the proxy.
   */
  peer: ArrayBuffer | null = null;
  forwardedFor = '';
  forwardedProto = '';
  forwardedHost = '';
  /** Header lines of every response to this request, each preceded by CRLF. */
  answerLines = '';
  /** Beta features that the client requests of a vendor, as a header value. Passed only to upstreams of that vendor. */
  openaiBeta = '';
  vendorcBeta = '';
  /** Header lines for every upstream. */
  forwarded: HeadLines = noLines;
  /** Header lines for the upstreams whose config names them. */
  passed: HeadLines = noLines;
  /**
   * Header lines for upstreams of both OpenAI's and Anthropic's protocols, then of one vendor's: see `HeaderReader`.
   */
  sharedLines: HeadLines = noLines;
  openaiLines: HeadLines = noLines;
  anthropicLines: HeadLines = noLines;
  googleLines: HeadLines = noLines;
  /** Number of header lines for upstreams. */
  lineCount = 0;
  /** Number of gateways that the call has passed before: see `wire/gateway-loop`. */
  gateways = 0;
  /** Name of a header that upstreams interpret and whose value cannot be written to one; empty if there is none. */
  unwritable = '';
  /** Bytes announced by `content-length`, or -1. */
  contentLength = -1;
  chunked = false;
  /**
   * Why the body's framing (RFC 9112 section 6.3), the host (section 3.2) or the key of a WebSocket handshake (RFC 6455
   * section 11.3.1) cannot be trusted, or null. The connection of such a request is closed.
   */
  framingFault: string | null = null;
}

// uWS calls back synchronously for each header. One callback for the process, with its subject in a variable, avoids a
// closure for every request.
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
      head.contentEncoding = joined(head.contentEncoding, value);
      break;
    case Slot.Connection:
      readConnection(head, value);
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
      if (head.socketKey === '') head.socketKey = value;
      else head.framingFault = 'The request has more than one sec-websocket-key header.';
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
    case Slot.Loop:
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
  if (slot === Slot.Loop) readLoop(head, value);
  else if (slot === Slot.ForwardedFor) head.forwardedFor = joined(head.forwardedFor, value);
  else if (slot === Slot.ForwardedProto) head.forwardedProto = joined(head.forwardedProto, value);
  else head.forwardedHost = joined(head.forwardedHost, value);
}

/** Longest value, and most lines, of a client's headers that are passed to upstreams only for information. */
const longestValue = 8192;
const mostLines = 64;

/**
 * Adds a line that only describes the caller. One that cannot be passed on is ignored (W3C Trace Context section 3.2).
 */
function readForUpstreams(head: RequestHead, slot: Slot, place: number, value: string): void {
  if (value.length > longestValue || head.lineCount === mostLines) return;
  const lines = slotsInUse.withLine(place, linesIn(head, slot), value);
  if (lines !== null) setLines(head, slot, lines);
}

/** Adds the line of a header that is recognised by the beginning of its name. */
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

/** Reads a header that a vendor's upstreams interpret, and whose value can be written. */
function readForVendor(head: RequestHead, slot: Slot, value: string): void {
  if (slot === Slot.VendorcVersion) head.vendorcVersion = value;
  else if (slot === Slot.OpenaiBeta) head.openaiBeta = joined(head.openaiBeta, value);
  else head.vendorcBeta = joined(head.vendorcBeta, value);
}

function readConnection(head: RequestHead, value: string): void {
  if (head.connection === '') head.isToldToClose = value.length === 'close'.length;
  head.connection = joined(head.connection, value);
}

function readLoop(head: RequestHead, value: string): void {
  const gateways = gatewaysIn(value);
  head.gateways += gateways;
  head.forwarded = joinLines(head.forwarded, passedGateways(gateways));
}

function readTransferEncoding(head: RequestHead, value: string): void {
  if (head.chunked) head.framingFault = 'The request has more than one transfer-encoding header.';
  else if (value.toLowerCase() !== 'chunked')
    head.framingFault = 'The only transfer-encoding that is understood is chunked.';
  head.chunked = true;
}

/** Joins header lines of one name to a list (RFC 9110 section 5.3). */
function joined(before: string, value: string): string {
  return before === '' ? value : `${before}, ${value}`;
}

/** Several lengths are a fault: uWS uses the first, but another hop may use the second. */
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

/**
 * Removes what is passed to upstreams of the headers that belong to the client's connection (RFC 9110 section 7.6.1).
 * What only the gateway reads remains: this is the other end of that connection.
 */
function dropFieldsOfConnection(head: RequestHead, names: ReadonlySet<string>): void {
  const passes = (name: string): boolean => !names.has(name) || name === loopHeader;
  head.forwarded = linesWhere(head.forwarded, passes);
  head.passed = linesWhere(head.passed, passes);
  head.sharedLines = linesWhere(head.sharedLines, passes);
  head.openaiLines = linesWhere(head.openaiLines, passes);
  head.anthropicLines = linesWhere(head.anthropicLines, passes);
  head.googleLines = linesWhere(head.googleLines, passes);
  for (const name of names) {
    const place = slotsInUse.find(name);
    if (place !== -1) dropField(head, slotsInUse.slotAt(place));
  }
}

function dropField(head: RequestHead, slot: Slot): void {
  switch (slot) {
    case Slot.UserAgent:
      head.userAgent = '';
      break;
    case Slot.IdempotencyKey:
      head.idempotencyKey = '';
      break;
    case Slot.VendorcVersion:
      head.vendorcVersion = '';
      break;
    case Slot.VendorcBeta:
      head.vendorcBeta = '';
      break;
    case Slot.OpenaiBeta:
      head.openaiBeta = '';
      break;
    case Slot.Range:
      head.range = '';
      break;
    case Slot.IfRange:
      head.ifRange = '';
      break;
    case Slot.IfNoneMatch:
      head.ifNoneMatch = '';
      break;
    default:
  }
}

/** Copies what is needed of `request`, which is valid only until its handler returns. */
export function readHead(request: HttpRequest, slots: HeaderSlots): RequestHead {
  const head = new RequestHead();
  subject = head;
  slotsInUse = slots;
  request.forEach(onHeader);
  const ofConnection = fieldsOfConnection(head.connection);
  if (ofConnection !== null) dropFieldsOfConnection(head, ofConnection);
  head.query = request.getQuery() ?? '';
  if (head.chunked && head.contentLength !== -1 && head.framingFault === null)
    head.framingFault = 'The request has both content-length and transfer-encoding.';
  return head;
}
