const sign = '@';
/** Digits for the microseconds of some centuries. */
const digits = 16;
const zero = 0x30;

/** Placeholder of a time in a text. */
export const blankStamp = sign + '0'.repeat(digits);

/** Returns the microseconds of a clock that all processes of a host share (CLOCK_MONOTONIC). */
export const hostUs = (): number => Number(process.hrtime.bigint() / 1000n);

/** Writes a time over the placeholder or time in a text. */
export function writeStamp(text: Buffer, us: number): void {
  text.write(String(us).padStart(digits, '0'), text.indexOf(sign) + 1, 'latin1');
}

/**
 * Calls back with each time in some bytes.
 * @param bytes a time that is cut off at their end is ignored
 */
export function readStamps(bytes: Buffer, onStamp: (us: number) => void): void {
  for (let at = bytes.indexOf(sign); at >= 0; at = bytes.indexOf(sign, at + 1)) {
    const end = at + 1 + digits;
    if (end > bytes.length) return;
    let us = 0;
    for (let digit = at + 1; digit < end; digit += 1) us = us * 10 + (bytes[digit] ?? 0) - zero;
    onStamp(us);
  }
}
