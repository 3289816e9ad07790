import type { Directive } from './directives.js';
import type { MediaFile } from './media-file.js';
import { binaryManner } from './media-manner.js';
import type { MediaRequest } from './media-route.js';
import { bodyReply, type Reply, type Step } from './reply.js';

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Answers `GET` and `HEAD` for a file, with conditions and ranges (RFC 9110, sections 13 and 14). One range is served;
 * several, or one that cannot be read, give the whole file.
 */
export function serveFile(asked: MediaRequest, file: MediaFile, directives: readonly Directive[]): Reply {
  const headers = {
    'content-type': file.type,
    'accept-ranges': 'bytes',
    etag: file.etag,
    'cache-control': 'private, max-age=3600',
  };
  if (matches(asked.header('if-none-match'), file.etag)) {
    return {
      ...bodyReply({ status: 304, body: '', manner: binaryManner, directives }),
      headers,
      length: null,
    };
  }
  const condition = asked.header('if-range');
  const wanted = condition === undefined || condition === file.etag ? asked.header('range') : undefined;
  const range = readRange(wanted, file.size);
  if (range === 'unsatisfiable') {
    const refused = bodyReply({ status: 416, body: '', manner: binaryManner, directives });
    return { ...refused, headers: { ...headers, 'content-range': `bytes */${file.size}` } };
  }
  const part = range ?? { from: 0, to: file.size };
  return {
    ...bodyReply({ status: range === null ? 200 : 206, body: '', manner: binaryManner, directives }),
    headers:
      range === null
        ? headers
        : { ...headers, 'content-range': `bytes ${part.from}-${part.to - 1}/${file.size}` },
    length: part.to - part.from,
    // Pieces count as events do, so that a fault can come in the middle of a file that is held nowhere.
    stream: true,
    steps: asked.method === 'HEAD' ? [] : pieces(file, part),
  };
}

function* pieces(file: MediaFile, part: Range): Generator<Step> {
  for (const bytes of file.read(part)) {
    yield { kind: 'data', bytes, tokens: 0 };
  }
}

function matches(header: string | undefined, etag: string): boolean {
  const tags = (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(etag);
}

/** The range, null for the whole file. */
function readRange(header: string | undefined, size: number): Range | 'unsatisfiable' | null {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') {
    return null;
  }
  if (first === '') {
    const from = Math.max(0, size - Number(last));
    return from < size ? { from, to: size } : 'unsatisfiable';
  }
  const from = Number(first);
  const to = last === '' ? size : Math.min(size, Number(last) + 1);
  if (last !== '' && Number(last) < from) {
    return null;
  }
  return from < size ? { from, to } : 'unsatisfiable';
}
