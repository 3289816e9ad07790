import type { TSchema } from 'typebox';
import { GatewayError } from '../errors.js';
import { compileValidator } from '../validator.js';
import { type Accepted, compileAcceptor } from './accept.js';
import { explain, requireExplainable } from './explain.js';

/** A check that is built once and run for every request. */
export interface CompiledSchema {
  /** Says yes to a body from its bytes alone, or does not know (null); then `check` decides on the parsed value. */
  accept(body: Buffer): Accepted | null;
  /** True when the value is of the schema and not one of another endpoint. */
  check(value: unknown): boolean;
  /** Why `check` said no. Slow; for a value that passed, the answer is a general refusal. */
  explain(value: unknown): GatewayError;
}

/** Bodies of other endpoints that come to this one by mistake. */
export interface MixedBody {
  /** A body that has this key is taken for one of this endpoint, whatever else it has. */
  readonly own: string;
  /** Keys that tell where the body belongs; the first one present is named. */
  readonly foreign: readonly { readonly key: string; readonly endpoint: string }[];
}

/**
 * Compiles a TypeBox schema to a fast check with a readable refusal.
 * @param schema Request body of an endpoint. Where skeletons are checked (`parseBody`), it may ask of a string only
 * its type, that it is not empty, and equality with constants.
 * @param mixed The endpoint's table of keys that belong elsewhere, or null.
 * @returns A check without state, safe to share.
 */
export function compileSchema(schema: TSchema, mixed: MixedBody | null = null): CompiledSchema {
  // Made when the first body comes that needs it: all of them together would take a good part of a worker's start.
  let validator: ReturnType<typeof compiled> | null = null;
  const isValid = (value: unknown): boolean => {
    validator ??= compiled(schema);
    return validator.Check(value);
  };
  if (mixed === null) {
    return {
      accept: compileAcceptor(schema),
      check: isValid,
      explain: (value) => explain(schema, value),
    };
  }
  return {
    // A body that has the endpoint's own key is not taken for one of another.
    accept: compileAcceptor(schema, mixed.own),
    check: (value) => isValid(value) && strayKey(mixed, value) === null,
    explain(value) {
      const stray = strayKey(mixed, value);
      return stray === null ? explain(schema, value) : belongsElsewhere(mixed, stray);
    },
  };
}

/** @throws {Error} for a schema keyword that `explain` cannot put into words */
function compiled(schema: TSchema): ReturnType<typeof compileValidator> {
  requireExplainable(schema);
  return compileValidator(schema);
}

function strayKey(mixed: MixedBody, value: unknown): MixedBody['foreign'][number] | null {
  if (typeof value !== 'object' || value === null || Object.hasOwn(value, mixed.own)) return null;
  return mixed.foreign.find(({ key }) => Object.hasOwn(value, key)) ?? null;
}

function belongsElsewhere(mixed: MixedBody, stray: MixedBody['foreign'][number]): GatewayError {
  return new GatewayError(
    'invalid_request_body',
    `This body looks like one for ${stray.endpoint}: it has '${stray.key}' and no '${mixed.own}'. ` +
      `Send it there, or send '${mixed.own}' here.`,
    { param: stray.key },
  );
}
