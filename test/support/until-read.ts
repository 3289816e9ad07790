import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { eventually } from './eventually.js';

/**
 * Waits until the process at the other end of a connection within this host has read everything that was written
 * here. What follows then arrives separately, and a reset discards nothing of it.
 */
export function untilRead({ localPort = 0, remotePort = 0 }: Socket): Promise<unknown> {
  // The fields `number: address:port address:port state sent:waiting …`, from the other end (proc_net_tcp(5)).
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');
  const ends = `[0-9A-F]{8}:${hex(remotePort)} [0-9A-F]{8}:${hex(localPort)}`;
  const unread = new RegExp(`: ${ends} [0-9A-F]{2} [0-9A-F]{8}:(?!00000000)`);
  const isRead = (): boolean => !unread.test(readFileSync('/proc/net/tcp', 'latin1'));
  return eventually(isRead, { what: 'bytes that are read', everyMs: 5 });
}
