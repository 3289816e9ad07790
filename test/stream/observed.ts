import { ownSecrets } from '../../src/config/snapshot.js';
import type { StreamRules } from '../../src/conversation/stream-rules.js';
import { unknownTokens } from '../../src/conversation/usage.js';
import { ObservedTransform } from '../../src/stream/observe.js';

/** What an answer of an endpoint passes through as it came; its request is thought to have cost seven tokens. */
export function observed(rules: StreamRules): ObservedTransform {
  return new ObservedTransform({
    rules,
    hideUsage: false,
    streamsUnasked: false,
    amend: null,
    inputEstimate: 7,
    tokens: unknownTokens,
    keep: null,
    secrets: ownSecrets([], []),
  });
}
