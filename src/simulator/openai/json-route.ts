import { createHash } from 'node:crypto';
import { errorReply } from '../chat/route.js';
import { type Directive, DirectiveError } from '../faults/directives.js';
import type { JsonObject } from '../http/json.js';
import type { Reply, Route, SimulatorRequest } from '../http/reply.js';
import { OpenAiError } from './error.js';
import { parseObject } from './values.js';

/** A request whose body is a JSON object. */
export interface JsonRequest {
  readonly body: JsonObject;
  /** Hexadecimal digest of the body: what ids are made from. */
  readonly digest: string;
  /** From the header. */
  readonly directives: readonly Directive[];
}

/**
 * A `POST` route of the OpenAI family that takes and, unless it streams, gives JSON.
 * @param answer may throw an `OpenAiError` or a `DirectiveError`
 */
export function jsonRoute(path: string, answer: (request: JsonRequest) => Reply): Route {
  return { method: 'POST', path, handle: (request) => handle(request, answer) };
}

function handle(request: SimulatorRequest, answer: (request: JsonRequest) => Reply): Reply {
  const { directives } = request;
  const digest = createHash('sha256').update(request.body).digest('hex');
  try {
    const reply = answer({ body: parseObject(request.body), digest, directives });
    return { ...reply, headers: { ...reply.headers, 'x-request-id': `sim-${digest.slice(0, 16)}` } };
  } catch (error) {
    if (error instanceof OpenAiError) {
      return { ...errorReply(error), directives };
    }
    if (error instanceof DirectiveError) {
      return errorReply(new OpenAiError(400, error.message, null, 'unknown_fault'));
    }
    throw error;
  }
}
