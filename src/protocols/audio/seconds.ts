const riff = Buffer.from('RIFF');
const waveFormat = Buffer.from('WAVEfmt ');
const riffAt = 0;
const waveAt = 8;
const byteRateAt = 28;
/** Of a file that has nothing but its format before the sound. */
const waveHeaderBytes = 44;

/**
 * Seconds of a sound: those of a WAV file, whose head says how many bytes a second has. Other formats say no such thing
 * where it could be read in passing.
 * @param begin its first bytes
 * @param length of the whole of it, which the head of a streamed file does not know
 */
export function speechSeconds(begin: Buffer, length: number): number {
  if (begin.length < waveHeaderBytes || !startsAt(begin, riff, riffAt)) return 0;
  if (!startsAt(begin, waveFormat, waveAt)) return 0;
  const byteRate = begin.readUInt32LE(byteRateAt);
  return byteRate === 0 ? 0 : Math.max(0, length - waveHeaderBytes) / byteRate;
}

/** A quoted key cannot occur inside a JSON string, where its quotes would be escaped. */
const durationKey = Buffer.from('"duration"');
const usageKey = Buffer.from('"usage"');
const number = /^\s*:\s*"?(\d+(?:\.\d+)?)/;
const secondsNumber = /^\s*:\s*\{[^{}]*"seconds"\s*:\s*(\d+(?:\.\d+)?)/;
/** A number, or a usage, with its name and the space around it. */
const valueBytes = 256;

/**
 * Seconds of the sound of which an answer is the transcript: as its `usage` counts them, or as its `duration`.
 * @param begin its first bytes
 * @param end its last bytes
 */
export function transcriptSeconds(begin: Buffer, _length: number, end: Buffer): number {
  return (
    numberAfter(end, end.lastIndexOf(usageKey), usageKey, secondsNumber) ??
    numberAfter(begin, begin.indexOf(durationKey), durationKey, number) ??
    0
  );
}

function numberAfter(bytes: Buffer, at: number, key: Buffer, form: RegExp): number | null {
  if (at === -1) return null;
  const from = at + key.length;
  const found = form.exec(bytes.toString('latin1', from, from + valueBytes));
  return found === null ? null : Number(found[1]);
}

function startsAt(bytes: Buffer, wanted: Buffer, at: number): boolean {
  return bytes.compare(wanted, 0, wanted.length, at, at + wanted.length) === 0;
}
