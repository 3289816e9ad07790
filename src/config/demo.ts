import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { textProtocols } from '../conversation/request.js';
import {
  byteLimits,
  defaults,
  madeUpSecret,
  type ResolvedConfig,
  type ResolvedModel,
  socketSettings,
} from './resolve.js';
import { storeDefaults } from './store-settings.js';
import type { Group, Protocol } from './types.js';

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

/**
 * The config of a gateway that was started without one: fixed keys and models, everything answered by the simulator.
 * @param created Unix seconds at which the models were first known
 */
export function demoConfig(created: number): ResolvedConfig {
  return {
    demo: true,
    listen: {
      host: defaults.host,
      port: defaults.port,
      tls: null,
      publicUrl: null,
      trustedProxies: null,
      cors: null,
    },
    workers: 0,
    vendors: defaults.vendors,
    limits: byteLimits(),
    routing: defaults.routing,
    sockets: socketSettings(),
    fetch: defaults.fetch,
    // A demo that was killed is not to hold its port for long.
    timeouts: { ...defaults.timeouts, orphanMs: 30_000 },
    store: { kind: 'embedded', path: resolve(storeDefaults.path), taskDays: storeDefaults.taskDays },
    outage: defaults.outage,
    usage: defaults.usage,
    videos: null,
    unpriced: defaults.unpriced,
    conversations: defaults.conversations,
    secret: madeUpSecret(),
    defaultModels: { moderations: 'sim-moderation', rerank: 'sim-rerank', realtime: 'sim-realtime' },
    upstreams: [
      {
        name: 'simulator',
        kind: 'simulator',
        baseUrl: null,
        apiKeys: [],
        headers: [],
        forwardHeaders: [],
        returnHeaders: [],
        preset: null,
        rules: null,
        tls: { ca: null, verify: true, serverName: null, clientCertificate: null },
        proxy: null,
        injectUsage: defaults.injectUsage,
        onLeave: defaults.onLeave,
        responsesSocket: false,
        fetchPrivate: false,
        allowMembers: [],
        maxConnections: defaults.maxConnections,
        maxWaiting: defaults.maxWaiting,
      },
    ],
    models: Object.entries(demoModels).map(
      ([name, protocols]): ResolvedModel => ({
        name,
        protocols,
        targets: [
          {
            upstream: 'simulator',
            model: name,
            images: null,
            priority: 0,
            weight: 1,
            responses: true,
            translation: defaults.translation,
            preset: null,
            rules: null,
            firstTokenMs: null,
            cost: null,
          },
        ],
        price: null,
        limits: null,
        budget: null,
        firstTokenMs: null,
        hedgeMs: null,
        tokens: { input: null, output: null },
        created,
      }),
    ),
    groups: [demoGroup('default', '*'), demoGroup('trial', 'sim-text')],
    keys: Object.entries(demoKeys).map(([group, key]) => ({
      id: key.slice('sk-'.length),
      hash: createHash('sha256').update(key).digest('hex'),
      groups: [group],
      expiresAt: null,
      limits: null,
      budget: null,
      mayRoute: false,
    })),
    admin: null,
  };
}

function demoGroup(name: string, model: string): Group {
  return { name, models: [model], limits: null, budget: null, priceFactor: null, shareVideos: false };
}

/** True for names and addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
