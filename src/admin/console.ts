import { GatewayError } from '../errors.js';
import { matchesTag } from '../wire/range.js';
import type { AdminAnswer } from './answer.js';
import { indexName, type PageFile, readPageFiles } from './page-files.js';
import type { AdminRequest, AdminRoute } from './routes.js';

/** The page loads nothing but its own files, runs no script of its markup, and is shown in no frame. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headersOfAll = {
  'content-security-policy': contentSecurityPolicy,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  // A browser asks each time whether its copy is still the right one: a new gateway may have other files.
  'cache-control': 'no-cache',
} as const;

/**
 * The console's page and its files. They hold no secret and need no token: the page asks for it, and sends it with
 * everything that it wants to know.
 */
export function consoleRoutes(): readonly AdminRoute[] {
  let reading: Promise<ReadonlyMap<string, PageFile>> | null = null;
  // Most gateways are never looked at, so nothing is read before somebody does.
  const files = (): Promise<ReadonlyMap<string, PageFile>> => {
    reading ??= readPageFiles().catch((error: unknown) => {
      reading = null;
      throw error;
    });
    return reading;
  };
  const answer = async (name: string, { request }: AdminRequest): Promise<AdminAnswer> => {
    const file = (await files()).get(name);
    if (file === undefined) throw new GatewayError('unknown_url');
    return fileAnswer(file, request.headers['if-none-match']);
  };
  return [
    { method: 'GET', path: '/', needsToken: false, handle: (request) => answer(indexName, request) },
    {
      method: 'GET',
      path: '/console/{name...}',
      needsToken: false,
      handle: (request) => answer(request.params.name ?? '', request),
    },
  ];
}

function fileAnswer({ contentType, text, size, etag }: PageFile, known: string | undefined): AdminAnswer {
  const headers = { ...headersOfAll, etag };
  if (known !== undefined && matchesTag(known, etag)) return { status: 304, contentType, body: '', headers };
  return { status: 200, contentType, body: text, headers: { ...headers, 'content-length': `${size}` } };
}
