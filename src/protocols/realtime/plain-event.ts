const quote = 0x22;
const space = 0x20;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Members that say nothing of the model, and lead an upstream nowhere. */
const plainNames = ['type', 'event_id', 'audio'].map((name) => Buffer.from(`"${name}"`));

/** By byte: 1 for what may stand in a text of JSON as it is (RFC 8259 section 7), of ASCII. */
const plainBytes = new Uint8Array(256).fill(1, space, 0x7f);
plainBytes[quote] = 0;
plainBytes[backslash] = 0;

/**
 * Whether a client's event is plainly a piece of sound, or as short a word as that: an object of members that are known
 * to be harmless, each at most once, whose values are texts of plain signs. Those are most of what a session sends, and
 * told at a fraction of what it costs to parse them. Of any other event this says nothing.
 */
export function isPlainEvent(event: Buffer): boolean {
  const last = event.length - 1;
  if (event[0] !== openBrace || event[last] !== closeBrace) return false;
  let seen = 0;
  for (let at = 1; ; at = behind(event, at)) {
    let name = 0;
    while (name < plainNames.length && !startsAt(event, at, plainNames[name] as Buffer)) name++;
    if (name === plainNames.length || (seen & (1 << name)) !== 0) return false;
    seen |= 1 << name;
    at += (plainNames[name] as Buffer).length;
    if (event[at] !== colon) return false;
    at = behind(event, at);
    if (event[at] !== quote) return false;
    at = plainEnd(event, at + 1, last);
    if (event[at] !== quote) return false;
    at++;
    if (at === last) return true;
    if (event[at] !== comma) return false;
  }
}

/** @returns the first place before `end` whose byte is none of the plain ones, or `end` */
function plainEnd(event: Buffer, from: number, end: number): number {
  const plain = plainBytes;
  let at = from;
  while (at < end && plain[event[at] as number] === 1) at++;
  return at;
}

/** @returns the place behind a colon or a comma, and the blank that may follow it */
function behind(event: Buffer, at: number): number {
  return event[at + 1] === space ? at + 2 : at + 1;
}

function startsAt(event: Buffer, at: number, name: Buffer): boolean {
  for (let i = 0; i < name.length; i++) if (event[at + i] !== name[i]) return false;
  return true;
}
