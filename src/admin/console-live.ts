import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { GatewayError } from '../errors.js';
import { matchesTag } from '../wire/range.js';
import type { AdminAnswer } from './answer.js';
import type { LiveStream } from './live-stream.js';
import { type AdminRequest, type AdminRoute, route } from './routes.js';

/** Routes the stream of live events: see `live-state.ts`. */
export function liveRoutes(live: LiveStream): readonly AdminRoute[] {
  return [
    route('GET', '/console/live', () => {
      live.checkRoom();
      return {
        status: 200,
        contentType: 'text/event-stream',
        // A proxy before the listener must not buffer events.
        headers: { 'x-accel-buffering': 'no' },
        body: (response) => live.watch(response),
      };
    }),
  ];
}

/** The page loads only its own files, runs no inline scripts, and cannot be framed. */
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
  // A browser must revalidate its copy each time, since a new gateway may have other files.
  'cache-control': 'no-cache',
} as const;

/** Where the build puts the page, and the manual as its help. */
const pageFolder = new URL('../../console/', import.meta.url);
const helpFolder = new URL('../manual/help/', import.meta.url);

const contentTypes = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
} as const;

/** The files served: those of the page and of the help. Their names cannot lead elsewhere. */
const pageName = /^(?:index\.html|main\.(?:css|js))$/;
const helpName = /^help\/[a-z0-9-]+\.(?:html|css)$/;

interface PageFile {
  readonly contentType: string;
  readonly text: string;
  /** Bytes. */
  readonly size: number;
  /** Hash of the content, quoted as in a header. */
  readonly etag: string;
}

/**
 * Routes the console's page and its files. They contain no secret and need no token: the page asks for one and sends it
 * with its requests.
 */
export function consoleRoutes(): readonly AdminRoute[] {
  // Most consoles are never opened, so a file is read at its first request.
  const files = new Map<string, Promise<PageFile>>();
  const answer = async (name: string, { request }: AdminRequest): Promise<AdminAnswer> => {
    let reading = files.get(name);
    if (reading === undefined) {
      reading = readPageFile(name);
      files.set(name, reading);
      // Unknown files and failed reads are not cached.
      reading.catch(() => files.delete(name));
    }
    return fileAnswer(await reading, request.headers['if-none-match']);
  };
  return [
    { method: 'GET', path: '/', access: 'open', handle: (request) => answer('index.html', request) },
    {
      method: 'GET',
      path: '/console/help/',
      access: 'open',
      handle: (request) => answer('help/index.html', request),
    },
    {
      method: 'GET',
      path: '/console/{name...}',
      access: 'open',
      handle: (request) => answer(request.params.name ?? '', request),
    },
  ];
}

/** @throws {GatewayError} `unknown_url` if the name is not one of the files */
async function readPageFile(name: string): Promise<PageFile> {
  const isHelp = helpName.test(name);
  if (!isHelp && !pageName.test(name)) throw new GatewayError('unknown_url');
  const url = isHelp ? new URL(name.slice('help/'.length), helpFolder) : new URL(name, pageFolder);
  const text = await readFile(url, 'utf8').catch((fault: NodeJS.ErrnoException) => {
    throw isHelp && fault.code === 'ENOENT' ? new GatewayError('unknown_url') : fault;
  });
  const contentType = contentTypes[name.slice(name.lastIndexOf('.') + 1) as keyof typeof contentTypes];
  const etag = `"${createHash('sha256').update(text).digest('base64url')}"`;
  return { contentType, text, size: Buffer.byteLength(text), etag };
}

function fileAnswer({ contentType, text, size, etag }: PageFile, known: string | undefined): AdminAnswer {
  const headers = { ...headersOfAll, etag };
  if (known !== undefined && matchesTag(known, etag)) return { status: 304, contentType, body: '', headers };
  return { status: 200, contentType, body: text, headers: { ...headers, 'content-length': `${size}` } };
}
