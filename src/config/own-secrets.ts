import type { KeyMark, OwnSecrets } from './types.js';

/** Shorter values are words. */
const leastSecret = 8;
/** What is shorter, or has no digit, may stand in an ordinary text: `sk-no-key-required`, `not-needed`. */
const leastMarked = 16;
/** A shorter end of a key is found too often in vain. */
const leastTail = 4;
const keyHeader = /auth|key|token|secret|pass|cookie|credential|signature/i;
const scheme = /^[\w-]+ +/;
/** From what is rarest in answers to what is not. */
const rarities = [/[QXZJKVWY]/, /[A-Z]/, /[0-9]/, /[jqxz]/, /[kvwy_-]/];

/** Makes a list of an upstream's secrets, by its keys and by the headers that are sent to it. */
export function ownSecrets(
  apiKeys: readonly string[],
  headers: readonly (readonly [string, string])[],
): OwnSecrets {
  const all: string[] = [...apiKeys];
  const others: string[] = [];
  for (const [name, value] of headers) {
    if (keyHeader.test(name)) all.push(value, value.replace(scheme, ''));
    else others.push(value);
  }
  const isSecret = (value: string): boolean => value.length >= leastSecret;
  const keys = all.filter(isSecret);
  return {
    keys,
    others: others.filter(isSecret),
    encoded: [...new Set(keys.flatMap(encodings))],
    marks: marksOf(keys),
  };
}

/** A key as it stands in base64 or hex, by itself or with something before it, as in `Basic` and behind `Bearer`. */
function encodings(key: string): readonly string[] {
  const hex = Buffer.from(key).toString('hex');
  const inBase64 = [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.from(' '.repeat(before) + key);
    // Without the characters that hold bits of what stands around it.
    const text = bytes
      .toString('base64')
      .slice(Math.ceil((before * 4) / 3), Math.floor((bytes.length * 4) / 3));
    return [text, text.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [hex, hex.toUpperCase(), ...inBase64];
}

function marksOf(keys: readonly string[]): readonly KeyMark[] {
  const marked = [...new Set(keys)].filter((key) => key.length >= leastMarked && /\d/.test(key));
  // What holds another one is found with it.
  return marked.filter((key) => !marked.some((other) => other !== key && key.includes(other))).map(markOf);
}

function markOf(key: string): KeyMark {
  const places = rarities.map((rare) => key.slice(0, 1 - leastTail).search(rare));
  const tail = key.slice(places.find((at) => at !== -1) ?? 0);
  return {
    key: Buffer.from(key),
    tail: Buffer.from(tail),
    // Without its last byte, which is the first of the next character in the other order.
    wide: Buffer.from(tail, 'utf16le').subarray(0, -1),
  };
}
