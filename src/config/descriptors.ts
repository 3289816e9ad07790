import { readFileSync } from 'node:fs';

/** Files that a worker has open besides connections, and the minimum of connections, more than a few upstreams need. */
const otherFiles = 256;
const leastConnections = 1024;
/** Each connection needs a local port. */
const mostConnections = 65_535;

/**
 * Computes how many connections to an upstream a worker has room for. Each belongs to a client's connection, so that is
 * half of the files that the process may open. Node has already raised its own limit as far as the system permits.
 * @param limits text of `/proc/self/limits`, on systems that have it
 */
export function connectionsWithin(limits: string): number {
  const found = /^Max open files\s+(\d+|unlimited)/m.exec(limits);
  if (found === null) return leastConnections;
  const files = found[1] === 'unlimited' ? Number.POSITIVE_INFINITY : Number(found[1]);
  return Math.min(mostConnections, Math.max(leastConnections, Math.floor((files - otherFiles) / 2)));
}

function ownLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

/** `connectionsWithin` of this process. */
export const usualConnections: number = connectionsWithin(ownLimits());
