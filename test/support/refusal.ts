import { GatewayError } from '../../src/errors.js';

/** Returns the refusal that a call throws, or null. Throws whatever else the call throws. */
export function refusalOf(call: () => unknown): GatewayError | null {
  try {
    call();
    return null;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}
