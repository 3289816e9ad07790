import { returnedNames } from '../wire/passed-headers.js';

/* Response headers that let pages of other origins call from a browser (the Fetch standard, "HTTP-CORS protocol"). */

export interface CorsSettings {
  /** Origins whose pages may call, such as `https://app.example.com`; `*` for all. */
  readonly origins: readonly string[];
  /** How long a browser may cache the response to a preflight. */
  readonly maxAgeSeconds: number;
  /** Names of further response headers that pages may read, beside those of every gateway. */
  readonly exposed: readonly string[];
}

export interface Cors {
  /**
   * Returns the header lines of every response to a request with this origin, each preceded by CRLF: only `vary` for an
   * origin that may not call.
   */
  answerLines(origin: string): string;
  /**
   * Returns the further header lines of the response to a preflight.
   * @param headers names of the headers that the page wants to send, as the request lists them
   */
  preflightLines(headers: string): string;
}

const exposed =
  'x-request-id, request-id, x-upstream-request-id, x-gateway-path, x-gateway-left-out, server-timing, ' +
  `${returnedNames.join(', ')}, content-range, etag`;
/** Header names separated by commas: nothing that could end the line. */
const headerNames = /^[A-Za-z0-9!#$%&'*+.^_`|~, \t-]{1,4096}$/;

/** @param settings null if no page of another origin may call */
export function createCors(settings: CorsSettings | null): Cors | null {
  if (settings === null) return null;
  const isOpen = settings.origins.includes('*');
  const exposedLine = `\r\naccess-control-expose-headers: ${[exposed, ...settings.exposed].join(', ')}`;
  const lines = new Map(settings.origins.map((origin) => [origin, linesFor(origin) + exposedLine]));
  const openLines = `\r\naccess-control-allow-origin: *${exposedLine}`;
  return {
    // The gateway uses no cookies, so `*` is allowed for every origin.
    answerLines: (origin) => (isOpen ? openLines : (lines.get(origin) ?? '\r\nvary: origin')),
    preflightLines: (headers) =>
      '\r\naccess-control-allow-methods: GET, POST, DELETE, HEAD' +
      (headerNames.test(headers) ? `\r\naccess-control-allow-headers: ${headers}` : '') +
      `\r\naccess-control-max-age: ${settings.maxAgeSeconds}` +
      '\r\nvary: access-control-request-headers',
  };
}

function linesFor(origin: string): string {
  return `\r\naccess-control-allow-origin: ${origin}\r\nvary: origin`;
}
