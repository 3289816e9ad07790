import { createHash } from 'node:crypto';
import { textProtocols } from '../conversation/request.js';
import { createConfigFiles } from './files.js';
import { type ResolvedConfig, resolveConfig } from './resolve.js';
import type { ConfigFile } from './schema.js';
import type { Protocol } from './types.js';

/** Keys of the demo. Its banner prints them, so it listens on loopback only. */
export const demoKeys = { default: 'sk-demo', trial: 'sk-demo-trial' } as const;

const demoModels: Readonly<Record<string, readonly Protocol[]>> = {
  'sim-text': [...textProtocols, 'completions'],
  'sim-embedding': ['embeddings'],
  'sim-rerank': ['rerank'],
  'sim-moderation': ['moderations'],
  'sim-transcribe': ['audio'],
  'sim-speech': ['audio'],
  'sim-image': ['images', 'generateContent'],
  'sim-video': ['video'],
  'sim-realtime': ['realtime'],
};

/** The demo's config, in the form of a file. */
const demoFile: ConfigFile = {
  // A killed demo must not hold its port for long.
  timeouts: { orphanMs: 30_000 },
  defaultModels: { moderations: 'sim-moderation', rerank: 'sim-rerank', realtime: 'sim-realtime' },
  upstreams: { simulator: { kind: 'simulator' } },
  models: Object.fromEntries(
    Object.entries(demoModels).map(([name, offered]) => [
      name,
      { protocols: [...offered], targets: [{ upstream: 'simulator', responses: true }] },
    ]),
  ),
  groups: { default: { models: ['*'] }, trial: { models: ['sim-text'] } },
  keys: Object.entries(demoKeys).map(([group, key]) => ({
    id: key.slice('sk-'.length),
    hash: `sha256:${createHash('sha256').update(key).digest('hex')}`,
    groups: [group],
  })),
};

/**
 * Creates the config of a gateway that is started without one: fixed keys and models, all served by the simulator.
 * @param created Unix seconds at which the models were first known
 */
export function demoConfig(created: number): ResolvedConfig {
  return { ...resolveConfig(demoFile, createConfigFiles(process.cwd()), created), demo: true };
}

/** Whether only this machine can reach a host name or address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
