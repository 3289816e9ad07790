import { createHash } from 'node:crypto';
import { errorReply } from './chat.js';
import { type Directive, DirectiveError } from './directives.js';
import type { JsonObject } from './json.js';
import { parseObject } from './json-body.js';
import { OpenAiError } from './openai-error.js';
import type { Reply, Route, SimulatorRequest } from './reply.js';

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

/** The refusal of a parameter's value. */
export function invalid(param: string, what: string): OpenAiError {
  return new OpenAiError(400, `Invalid value for '${param}': expected ${what}.`, param, 'invalid_value');
}

/** The value of a parameter that must be there. */
export function required(body: JsonObject, name: string): unknown {
  const value = body[name] ?? null;
  if (value === null) {
    throw new OpenAiError(400, `Missing required parameter: '${name}'.`, name, 'missing_required_parameter');
  }
  return value;
}

/** The value of a parameter that is a whole number within bounds, or null without one. */
export function integer(body: JsonObject, name: string, least: number, most: number): number | null {
  const value = body[name] ?? null;
  if (value === null) {
    return null;
  }
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    const upTo = most === Infinity ? 'on' : `to ${most}`;
    throw invalid(name, `an integer from ${least} ${upTo}`);
  }
  return value;
}

/**
 * The model that a request names.
 * @param known the one that the route offers
 * @param optional whether it stands in where none is named
 */
export function modelOf(body: JsonObject, known: string, optional: boolean): string {
  const model = optional && (body.model ?? null) === null ? known : required(body, 'model');
  if (typeof model !== 'string') {
    throw invalid('model', 'a string');
  }
  if (model !== known) {
    throw new OpenAiError(404, `The model '${model}' does not exist.`, 'model', 'model_not_found');
  }
  return model;
}

/** Whether a value is a text in the form of tokens. */
export function isTokens(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((one) => Number.isInteger(one) && Number(one) >= 0)
  );
}
