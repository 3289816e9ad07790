import type { ResolvedConfig } from '../../src/config/resolve.js';

/** The config with upstreams that are cancelled as soon as a client leaves: reading on for it takes up to ten seconds. */
export function cancellingOnLeave(config: ResolvedConfig): ResolvedConfig {
  return {
    ...config,
    upstreams: config.upstreams.map((upstream) => ({ ...upstream, onLeave: 'cancel' as const })),
  };
}
