import type { BitWriter } from './bit-writer.js';

/** Writes ue(v) of H.264 9.1: a whole number from 0 on. */
export function unsigned(writer: BitWriter, value: number): void {
  const width = 32 - Math.clz32(value + 1);
  writer.put(0, width - 1);
  writer.put(value + 1, width);
}

/** Writes se(v) of H.264 9.1.1: a whole number. */
export function signed(writer: BitWriter, value: number): void {
  unsigned(writer, value > 0 ? 2 * value - 1 : -2 * value);
}
