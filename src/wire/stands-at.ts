/** Whether a text stands in bytes at an offset. Compared in a loop: a call into native code costs more than a short text. */
export function standsAt(bytes: Buffer, at: number, text: Buffer): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return true;
}
