import { readFileSync } from 'node:fs';

/** What a worker has open besides, and more connections than few upstreams need. */
const otherFiles = 256;
const leastConnections = 1024;
/** A connection has a port of its own at this end. */
const mostConnections = 65_535;

/**
 * How many connections to an upstream a worker has room for: each belongs to one of a client, so half of the files that
 * the process may have open. Node has raised its own limit as far as the system allows.
 * @param limits text of `/proc/self/limits`, of systems that have it
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

/** The same for this process. */
export const usualConnections: number = connectionsWithin(ownLimits());
