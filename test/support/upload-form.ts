import { createHash } from 'node:crypto';
import { testKey } from './gateway.js';

/** A part of a form: a field, or with a filename a file. */
export interface FormPiece {
  readonly name: string;
  readonly value: string | Buffer;
  readonly filename?: string;
}

export const boundary = 'limit-of-parts';

/** Returns the bytes of a form with the boundary above, or another. */
export function formOf(pieces: readonly FormPiece[], limit = boundary): Buffer {
  const bytes: Buffer[] = [];
  for (const { name, value, filename } of pieces) {
    const file = filename === undefined ? '' : `; filename="${filename}"\r\ncontent-type: audio/mpeg`;
    bytes.push(Buffer.from(`--${limit}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n`));
    bytes.push(Buffer.from(value), Buffer.from('\r\n'));
  }
  return Buffer.concat([...bytes, Buffer.from(`--${limit}--\r\n`)]);
}

export const model: FormPiece = { name: 'model', value: 'm' };

/** Returns a file of this many bytes, which differ by position. */
export function fileOf(bytes: number): FormPiece {
  const value = Buffer.alloc(bytes, '0123456789\r\n--limit-of-');
  for (let at = 0; at + 4 <= bytes; at += 4096) value.writeUInt32BE(at, at);
  return { name: 'file', filename: 'talk.mp3', value };
}

interface UploadHead {
  /** Bytes of the body; without it, the body is chunked. */
  readonly length?: number;
  readonly path?: string;
  readonly contentType?: string;
  readonly key?: string;
  /** Further lines, each followed by CRLF. */
  readonly lines?: string;
}

/** Returns the head of a request with a form, including its empty line. */
export function uploadHead(options: UploadHead = {}): string {
  const { length, path = '/v1/audio/transcriptions', lines = '', key = testKey } = options;
  const type = options.contentType ?? `multipart/form-data; boundary=${boundary}`;
  const framing = length === undefined ? 'transfer-encoding: chunked' : `content-length: ${length}`;
  return (
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: ${type}\r\n${lines}${framing}\r\n\r\n`
  );
}

/** Returns a whole request with a form of known length. */
export function uploadRequest(form: Buffer, options: UploadHead = {}): Buffer {
  return Buffer.concat([Buffer.from(uploadHead({ ...options, length: form.length })), form]);
}

/** Returns bytes as one chunk of a chunked body. */
export function chunkOf(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** Returns a whole request with a form that is split into chunks at these offsets. */
export function chunkedRequest(form: Buffer, cuts: readonly number[], options: UploadHead = {}): Buffer {
  const bytes: Buffer[] = [Buffer.from(uploadHead(options))];
  let from = 0;
  for (const to of [...new Set([...cuts, form.length])].sort((a, b) => a - b)) {
    if (to > from) bytes.push(chunkOf(form.subarray(from, to)));
    from = to;
  }
  return Buffer.concat([...bytes, Buffer.from('0\r\n\r\n')]);
}

export function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
