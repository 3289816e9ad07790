/**
 * Length of every message of the realtime works. It takes two extended length bytes in its frame (RFC 6455 section
 * 5.2).
 */
const messageBytes = 1024;

/** Length of a server's frame, which is not masked. */
export const serverFrameBytes = 4 + messageBytes;

const finalText = 0x81;
const lengthFollows = 126;
const masked = 0x80;
/** One mask for all frames. Masks keep caches from taking frames for HTTP, and there are none here. */
const mask = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

/**
 * @param session number of the session, so that an event that comes back on another session is detected
 * @returns an event of the realtime protocol, 1,024 bytes long
 */
export function audioEvent(session: number): string {
  const make = (audio: string): string =>
    JSON.stringify({
      event_id: `event_${String(session).padStart(6, '0')}`,
      type: 'input_audio_buffer.append',
      audio,
    });
  const room = messageBytes - make('').length;
  const sound = Buffer.from(Array.from({ length: messageBytes }, (_, index) => (index * 37) % 251));
  return make(sound.toString('base64').slice(0, room));
}

/** Returns a client's frame for a message. */
export function clientFrame(message: string): Buffer {
  const payload = Buffer.from(message).map((byte, index) => byte ^ (mask[index % mask.length] ?? 0));
  return Buffer.concat([head(masked), mask, payload]);
}

/** Returns a server's frame for a message. */
export function serverFrame(message: string): Buffer {
  return Buffer.concat([head(0), Buffer.from(message)]);
}

function head(flags: number): Buffer {
  return Buffer.from([finalText, flags | lengthFollows, messageBytes >> 8, messageBytes & 0xff]);
}
