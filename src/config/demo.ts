import { createHash } from 'node:crypto';
import { textProtocols } from '../conversation/request.js';
import { createConfigFiles } from './files.js';
import { type ResolvedConfig, resolveConfig } from './resolve.js';
import type { ConfigFile } from './schema.js';
import type { Protocol } from './types.js';

/** The keys of the demo: printed in its banner, and the reason why it listens on loopback only. */
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

/** What a config file would say for it. */
const demoFile: ConfigFile = {
  // A demo that was killed is not to hold its port for long.
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
 * The config of a gateway that was started without one: fixed keys and models, everything answered by the simulator.
 * @param created Unix seconds at which the models were first known
 */
export function demoConfig(created: number): ResolvedConfig {
  return { ...resolveConfig(demoFile, createConfigFiles(process.cwd()), created), demo: true };
}

/** True for names and addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
