import { createHmac } from 'node:crypto';

const key = 'simulator';
const tagLength = 16;

/** The purpose of a sealed text; a seal of one kind is invalid for any other. */
type SealKind = 'thinking' | 'redacted thinking' | 'thought' | 'reasoning' | 'compaction';

/**
 * Seals a text in the opaque form that protocols use for content only the model may read: base64 that the simulator
 * recognizes as its own. The same text has the same seal.
 */
export function seal(kind: SealKind, text: string): string {
  const bytes = Buffer.from(text);
  return Buffer.concat([tagOf(kind, bytes), bytes]).toString('base64');
}

/** The text in a seal of this kind, or null if the seal is not the simulator's or was changed. */
export function unseal(kind: SealKind, sealed: string): string | null {
  const whole = Buffer.from(sealed, 'base64');
  const bytes = whole.subarray(tagLength);
  const isOwn =
    whole.length >= tagLength &&
    tagOf(kind, bytes).equals(whole.subarray(0, tagLength)) &&
    whole.toString('base64') === sealed;
  return isOwn ? bytes.toString() : null;
}

function tagOf(kind: SealKind, bytes: Buffer): Buffer {
  return createHmac('sha256', key).update(kind).update('\0').update(bytes).digest().subarray(0, tagLength);
}
