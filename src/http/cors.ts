/** What browsers ask before a page of another origin may call (the Fetch standard, "HTTP-CORS protocol"). */
import { returnedNames } from '../wire/passed-headers.js';

export interface CorsSettings {
  /** Origins whose pages may call, such as `https://app.example.com`; `*` for all. */
  readonly origins: readonly string[];
  /** For how long a browser may remember what it was told. */
  readonly maxAgeSeconds: number;
  /** Names of headers of answers that pages may read beside those of every gateway. */
  readonly exposed?: readonly string[];
}

export interface Cors {
  /** Header lines of every answer to a request with that origin, CRLF before each; empty for one that may not call. */
  answerLines(origin: string): string;
  /**
   * Header lines of the answer to a preflight, besides those.
   * @param headers that the page wants to send, as the request names them
   */
  preflightLines(headers: string): string;
}

const exposed =
  'x-request-id, request-id, x-upstream-request-id, x-gateway-path, x-gateway-left-out, server-timing, ' +
  `${returnedNames.join(', ')}, content-range, etag`;
/** Names of headers and the commas between them: nothing that could end the line. */
const headerNames = /^[A-Za-z0-9!#$%&'*+.^_`|~, \t-]{1,4096}$/;

/** @param settings null where no page of another origin may call */
export function createCors(settings: CorsSettings | null): Cors | null {
  if (settings === null) return null;
  const isOpen = settings.origins.includes('*');
  const exposedLine = `\r\naccess-control-expose-headers: ${[exposed, ...(settings.exposed ?? [])].join(', ')}`;
  const lines = new Map(settings.origins.map((origin) => [origin, linesFor(origin) + exposedLine]));
  const openLines = `\r\naccess-control-allow-origin: *${exposedLine}`;
  return {
    // No cookies are ever taken, so `*` may stand for every origin.
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
