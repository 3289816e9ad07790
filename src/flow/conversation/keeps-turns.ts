import type { Target } from '../../config/types.js';
import type { Endpoint } from '../../protocols/protocol.js';

/**
 * Whether a target keeps the turns of an endpoint's calls itself: it takes these as they come, and the config does not
 * say that it takes no notice of what they go on from.
 */
export function keepsTurns({ native, translation }: Target, { protocol, conversation }: Endpoint): boolean {
  return native.has(protocol) && (translation.threads || conversation?.withoutTurns === undefined);
}
