import type { ResolvedConfig } from '../../src/config/resolve.js';

/**
 * Makes a config whose upstreams are cancelled as soon as a client leaves. Reading on would take up to ten seconds.
 */
export function cancellingOnLeave(config: ResolvedConfig): ResolvedConfig {
  return {
    ...config,
    upstreams: config.upstreams.map((upstream) => ({ ...upstream, onLeave: 'cancel' as const })),
  };
}
