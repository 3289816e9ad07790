import { createHash } from 'node:crypto';

const checksumLength = 8;

/** What a name stands for; a name of one kind is none of another. */
export type NameKind = 'media' | 'task';

/**
 * A name that says all about what it names, so that nothing needs to be kept: JSON in base64url (RFC 4648, section 5)
 * and a checksum.
 */
export function packName(kind: NameKind, value: unknown): string {
  const text = Buffer.from(JSON.stringify(value)).toString('base64url');
  return text + checksumOf(kind, text);
}

/** The JSON value in a name, or null when it was not made here or was changed. */
export function unpackName(kind: NameKind, name: string): unknown {
  const text = name.slice(0, -checksumLength);
  if (text === '' || name.slice(-checksumLength) !== checksumOf(kind, text)) {
    return null;
  }
  return JSON.parse(Buffer.from(text, 'base64url').toString());
}

function checksumOf(kind: NameKind, text: string): string {
  return createHash('sha256').update(kind).update('\0').update(text).digest('hex').slice(0, checksumLength);
}
