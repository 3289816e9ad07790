import type { Test } from 'tap';
import type { CompiledSchema } from '../../src/schema/accept.js';

/** A refused body, the `param` of its refusal and what its message says. */
export type Refused = readonly [body: unknown, param: string | null, message: string];

/** The whole check takes the body. */
export function isValid(t: Test, schema: CompiledSchema, body: unknown): void {
  t.ok(schema.check(body), `${JSON.stringify(body).slice(0, 120)} is valid`);
}

/** Both checks take the body: the one over its bytes by itself, without a parse. */
export function takes(t: Test, schema: CompiledSchema, body: unknown): void {
  const name = JSON.stringify(body).slice(0, 120);
  isValid(t, schema, body);
  t.ok(schema.accept(Buffer.from(JSON.stringify(body))), `${name} is accepted without a parse`);
  t.ok(schema.accept(Buffer.from(JSON.stringify(body, null, 2))), `${name} is accepted indented`);
}

/** Neither check takes the body, and the refusal says why. */
export function refuses(t: Test, schema: CompiledSchema, [body, param, message]: Refused): void {
  const name = JSON.stringify(body).slice(0, 120);
  t.notOk(schema.check(body), `${name} is not valid`);
  t.equal(schema.accept(Buffer.from(JSON.stringify(body))), null, `${name} is not accepted`);
  const error = schema.explain(body);
  t.equal(error.status, 400);
  t.equal(error.param, param, name);
  t.ok(error.message.includes(message), `${name}: ${error.message}`);
}
