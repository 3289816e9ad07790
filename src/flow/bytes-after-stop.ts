import { readFileSync } from 'node:fs';

/** What comes of one upload in spite of a stop may not take more than this part of what a worker may hold. */
const waitingShare = 8;
/** But at least this many times what the system holds of a connection: while that is read, about as much follows. */
const kernelTimes = 2;
/** The largest receive buffer of a connection where the system does not tell: the default of Linux, tcp(7). */
const usualBuffer = 6 * 1024 * 1024;

/**
 * How many bytes of one upload may come after it was stopped. uWS reads a socket on as long as each read gives full 512
 * KiB, stopped or not: so all comes that the system holds of the connection, and what a client that is as fast as this
 * process sends meanwhile. A client has done nothing wrong by then, so the least bound follows the system's.
 * @param bufferedBytes that a worker may hold in all
 * @param kernelBytes see `largestReceiveBuffer`
 */
export function mostAfterStop(bufferedBytes: number, kernelBytes: number): number {
  return Math.max(kernelTimes * kernelBytes, Math.floor(bufferedBytes / waitingShare));
}

/**
 * The most that the system holds of what a connection has received, in bytes.
 * @param setting `net.ipv4.tcp_rmem` (tcp(7)): the least, first and largest size of that buffer
 */
export function largestReceiveBuffer(setting: string | null = readSetting()): number {
  const largest = Number(setting?.trim().split(/\s+/)[2] ?? Number.NaN);
  return Number.isSafeInteger(largest) && largest > 0 ? largest : usualBuffer;
}

function readSetting(): string | null {
  try {
    return readFileSync('/proc/sys/net/ipv4/tcp_rmem', 'latin1');
  } catch {
    return null;
  }
}
