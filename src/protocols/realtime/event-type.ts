/** An event's type stands in its first bytes, before everything that may be long. */
const typeWithin = 256;

/** A response has ended. */
export const responseDone = Buffer.from('"response.done"');
/** What the client has said, as text. */
export const transcribed = Buffer.from('"conversation.item.input_audio_transcription.completed"');

/** The bytes of a server event in which its type stands, of which types are looked for with their quotes. */
export function typeBytes(event: Buffer): Buffer {
  return event.length > typeWithin ? event.subarray(0, typeWithin) : event;
}
