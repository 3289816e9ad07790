/** An event's type stands in its first bytes, before everything that may be long. */
const typeWithin = 256;

/** A response has ended. */
export const responseDone = Buffer.from('"response.done"');
/** What the client has said, as text. */
export const transcribed = Buffer.from('"conversation.item.input_audio_transcription.completed"');

const quote = 0x22;
const letterR = 0x72;
const letterC = 0x63;
const letterV = 0x76;
/** How far behind a quote the second word of `response.done` begins. */
const secondWord = 'response.'.length + 1;
const seconds = [...'dc'].map((letter) => letter.charCodeAt(0));

/**
 * Whether the type of a server event may be one of those that are looked for here and in `OpenUsage`: false for nearly
 * all of them, pieces of sound and text, by a look at the letters behind the first quotes.
 */
export function mayTellUsage(event: Buffer): boolean {
  const end = Math.min(event.length, typeWithin);
  for (let at = 0; at < end; at++) {
    if (event[at] !== quote) continue;
    const first = event[at + 1];
    // Of `conversation`, which `content_index` is not.
    if (first === letterC && event[at + 4] === letterV) return true;
    if (first === letterR && seconds.includes(event[at + secondWord] as number)) return true;
  }
  return false;
}

/** The bytes of a server event in which its type stands, of which types are looked for with their quotes. */
export function typeBytes(event: Buffer): Buffer {
  return event.length > typeWithin ? event.subarray(0, typeWithin) : event;
}
