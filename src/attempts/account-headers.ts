import type { ConfiguredHeaders } from '../config/types.js';
import type { Call } from '../flow/call.js';
import { fieldsOf } from '../wire/head.js';
import { namesAccount } from '../wire/passed-headers.js';

/**
 * Whether a client's request names an account at an upstream, as the config lets it. Our key may be refused beside it
 * without being at fault, and a caller could bring every key into disrepute so.
 */
export function carriesAccount({ exchange }: Call, { clientHeaders }: ConfiguredHeaders): boolean {
  const pass = clientHeaders?.pass;
  if (pass === undefined || pass.size === 0) return false;
  return fieldsOf(exchange.head.passed).some(([name]) => pass.has(name) && namesAccount(name));
}
