import { request } from 'node:http';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { listenersOn } from '../../src/supervisor/take-over.js';
import { demoKeyHash } from '../support/demo-key.js';
import { eventually } from '../support/eventually.js';
import { type GatewayProcesses, writeConfig } from '../support/gateway-processes.js';

export const key = 'sk-demo';
/** What the simulator repeats word by word. */
const words = 'one two three four five six seven eight nine ten';

/** The config of a gateway in front of the simulator, with the key `sk-demo`. */
export function configWith(more: Record<string, unknown>) {
  return {
    upstreams: { local: { kind: 'simulator' } },
    models: { 'sim-text': { protocols: ['chat'], targets: [{ upstream: 'local' }] } },
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'team', hash: demoKeyHash, groups: ['default'] }],
    ...more,
  };
}

/** Writes the config anew and has the gateway read it. */
export async function reload(gateway: GatewayProcesses, config: unknown): Promise<void> {
  writeConfig(gateway.configPath ?? '', config);
  gateway.kill('SIGHUP');
}

/** In how many lines of the log a text is. */
export function countLogged(gateway: GatewayProcesses, text: string): number {
  return gateway.logs.filter((line) => line.includes(text)).length;
}

/** Whether all the workers that serve are others than these. */
export function isReplaced(
  gateway: GatewayProcesses,
  before: readonly number[],
  count = before.length,
): boolean {
  const now = gateway.workerPids();
  return now.length === count && now.every((pid) => !before.includes(pid));
}

/**
 * Resolves when none of these workers listens any more. Until then they take connections, and the system resets one that
 * opens as one of them ceases to.
 */
export function untilClosed({ port }: GatewayProcesses, workers: readonly number[]): Promise<unknown> {
  const isClosed = () => !listenersOn('127.0.0.1', port).some((pid) => workers.includes(pid));
  return eventually(isClosed, { what: 'workers that do not listen', everyMs: 10 });
}

/** A stream that was asked for on a connection of its own. */
export async function openStream(
  port: number,
  secure: boolean,
  content = words,
): Promise<{ readonly text: Promise<string> }> {
  const body = JSON.stringify({
    model: 'sim-text',
    stream: true,
    messages: [{ role: 'user', content }],
  });
  const socket = secure ? await openTls(port) : undefined;
  const sent = request({
    host: '127.0.0.1',
    port,
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(socket === undefined ? { agent: false } : { createConnection: () => socket }),
  });
  sent.end(body);
  return new Promise((opened, failed) => {
    sent.once('error', failed);
    sent.once('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      const ended = new Promise<string>((done, broke) => {
        answer.on('data', (chunk) => {
          text += chunk;
        });
        answer.once('error', broke);
        answer.once('end', () => done(text));
      });
      opened({ text: ended });
    });
  });
}

/** A connection to a gateway whose certificate nobody looks at. */
export function openTls(port: number): Promise<TLSSocket> {
  return new Promise((done, failed) => {
    const socket = tlsConnect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => done(socket));
    socket.once('error', failed);
  });
}
