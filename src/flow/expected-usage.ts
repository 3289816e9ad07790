import { bodyEstimate, estimatedUsage } from '../conversation/estimate-usage.js';
import type { Usage } from '../conversation/usage.js';
import { GatewayError } from '../errors.js';
import type { OutputLimit } from '../protocols/protocol.js';
import { findValues, type Span } from '../wire/json-scan.js';
import { skipSpace } from '../wire/json-space.js';
import type { Call } from './call.js';

/** Output of a call that sets no limit to it. */
const presumedOutput = 1000;
const openBrace = 0x7b;

/**
 * The tokens for which a call is taken until its upstream has counted them: of what it says, by its length, and of
 * what it lets an upstream answer.
 */
export function expectedUsage({ body, route, upload }: Call): Usage {
  const endpoint = route?.endpoint;
  if (body === null || upload !== null || endpoint == null) return estimatedUsage(0, 0);
  const { outputLimit } = endpoint;
  return estimatedUsage(bodyEstimate(body), outputLimit === null ? 0 : outputTokens(body, outputLimit));
}

function outputTokens(body: Buffer, { within, fields, choices }: OutputLimit): number {
  let from = skipSpace(body, 0);
  try {
    if (within !== null) {
      const [inner] = findValues(body, from, [within]);
      if (inner == null || body[inner.start] !== openBrace) return presumedOutput;
      from = inner.start;
    }
    const [answers = null, ...limits] = findValues(body, from, [choices, ...fields]);
    const most = limits.map((span) => numberAt(body, span)).find((value) => value !== null);
    return (most ?? presumedOutput) * (numberAt(body, answers) ?? 1);
  } catch (fault) {
    // A key that stands twice: what is used in the end will tell.
    if (fault instanceof GatewayError) return presumedOutput;
    throw fault;
  }
}

function numberAt(body: Buffer, span: Span | null): number | null {
  if (span === null) return null;
  const value = Number(body.toString('latin1', span.start, span.end));
  return Number.isSafeInteger(value) && value > 0 ? value : null;
}
