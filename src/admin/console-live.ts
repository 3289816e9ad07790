import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { GatewayError } from '../errors.js';
import { matchesTag } from '../wire/range.js';
import type { AdminAnswer } from './answer.js';
import type { LiveStream } from './live-stream.js';
import { type AdminRequest, type AdminRoute, route } from './routes.js';

/** What is going on, as it happens: see `live-state.ts`. */
export function liveRoutes(live: LiveStream): readonly AdminRoute[] {
  return [
    route('GET', '/console/live', () => {
      live.checkRoom();
      return {
        status: 200,
        contentType: 'text/event-stream',
        // A proxy before the listener is not to gather events.
        headers: { 'x-accel-buffering': 'no' },
        body: (response) => live.watch(response),
      };
    }),
  ];
}

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

/** Where the build puts the page, and the manual, which is its help. */
const pageFolder = new URL('../../console/', import.meta.url);
const helpFolder = new URL('../manual/help/', import.meta.url);

const contentTypes = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
} as const;

/** What is served: the files of the page, and those of the help, whose names lead nowhere else. */
const pageName = /^(?:index\.html|main\.(?:css|js))$/;
const helpName = /^help\/[a-z0-9-]+\.(?:html|css)$/;

interface PageFile {
  readonly contentType: string;
  readonly text: string;
  /** In bytes. */
  readonly size: number;
  /** Of the content, quoted as a header has it. */
  readonly etag: string;
}

/**
 * The console's page and its files. They hold no secret and need no token: the page asks for it, and sends it with
 * everything that it wants to know.
 */
export function consoleRoutes(): readonly AdminRoute[] {
  // Most gateways are never looked at, so a file is read when somebody first asks for it.
  const files = new Map<string, Promise<PageFile>>();
  const answer = async (name: string, { request }: AdminRequest): Promise<AdminAnswer> => {
    let reading = files.get(name);
    if (reading === undefined) {
      reading = readPageFile(name);
      files.set(name, reading);
      // What is no file is not remembered, nor is what could not be read.
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

/** @throws {GatewayError} `unknown_url` for what is none of the files */
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
