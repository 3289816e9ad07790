import { defaults } from '../../src/config/resolve.js';
import type { RoutingSettings, Target, Upstream } from '../../src/config/types.js';

export const settings: RoutingSettings = defaults.routing;

/** An upstream of which only what routing reads is filled in. */
export function makeUpstream(
  name: string,
  change: { host?: string; apiKeys?: readonly string[] } = {},
): Upstream {
  const { host = 'host', apiKeys = ['key'] } = change;
  return { name, origin: { identity: `http://${host}` }, basePath: '', apiKeys } as unknown as Upstream;
}

/** A target of an upstream, or of a new one with that name. */
export function makeTarget(
  upstream: string | Upstream,
  change: { model?: string; priority?: number; weight?: number } = {},
): Target {
  const { model = 'm', priority = 0, weight = 1 } = change;
  return {
    upstream: typeof upstream === 'string' ? makeUpstream(upstream) : upstream,
    model,
    native: new Set(['chat']),
    translatesTo: 'chat',
    translation: { ...defaults.translation, model, upstream: 'u', streamUsage: true },
    rules: null,
    rulesForOff: null,
    headers: [],
    clientHeaders: null,
    images: 'openai',
    priority,
    weight,
    firstTokenMs: null,
    cost: null,
  };
}

/** The names of the targets' upstreams, one after the other. */
export function namesOf(targets: readonly Target[]): string {
  return targets.map(({ upstream }) => upstream.name).join('');
}
