import type { Accepted, OutputSpans } from '../../schema/accept.js';
import type { CompiledSchema } from '../../schema/compile.js';
import { isObject } from '../../wire/json.js';
import { isShortToWalk, requireCheapBody } from '../../wire/json-cost.js';
import { type BodySpans, scanBody } from '../../wire/json-scan.js';
import { lookThrough, noMembers } from '../../wire/member-guard.js';
import { backgroundMember, goingOnMembers } from '../../wire/routed-members.js';
import { parseBody } from '../../wire/skeleton.js';

/** What the later phases need to know of a request body that has passed its endpoint's schema. */
export interface ValidatedBody extends Omit<Accepted, 'output'> {
  /** Null where nobody has looked for it. */
  readonly output: OutputSpans | null;
}

/**
 * Validates the body of a request that is passed through as it came.
 * @param body The whole body, decoded from any content coding. Not changed, not kept.
 * @param schema The endpoint's check.
 * @param mostValues `limits.bodyValues`
 * @returns What the later phases need to know of the body.
 * @throws {GatewayError} Of status 400, saying what is wrong and where.
 */
export function validateBody(body: Buffer, schema: CompiledSchema, mostValues: number): ValidatedBody {
  // What it costs to parse is a walk of its own, which as a rule is not worth its time: nearly no body is parsed.
  const isShort = isShortToWalk(body.length, mostValues);
  if (!isShort) requireCheapBody(body, mostValues);
  const accepted = schema.accept(body);
  if (accepted !== null) return accepted;
  if (isShort) requireCheapBody(body, mostValues);
  return parseAndCheck(body, schema);
}

const noSpans: BodySpans = { open: 0, model: null, streamOptions: null, includeUsage: null };

/** What the later phases need to know of a form, or of another body that is not passed on as it came. */
export function readValidated(model: string, stream: boolean): ValidatedBody {
  return {
    scan: noSpans,
    model,
    stream,
    includeUsage: true,
    output: null,
    goesOn: false,
    inBackground: false,
    members: noMembers,
  };
}

/** The verdict on what `accept` does not know, and the reason of every refusal. */
function parseAndCheck(body: Buffer, schema: CompiledSchema): ValidatedBody {
  const scan = scanBody(body);
  const value = parseBody(body, scan);
  const members = lookThrough(body, schema.guard);
  if (!isObject(value) || !schema.check(value)) throw schema.explain(value);
  const { model, stream, stream_options: options } = value;
  const background = value[backgroundMember] ?? false;
  return {
    scan,
    model: typeof model === 'string' ? model : '',
    stream: stream === true,
    includeUsage: asksForUsage(options),
    output: null,
    goesOn: goingOnMembers.some((name) => (value[name] ?? null) !== null),
    inBackground: background !== false,
    members,
  };
}

function asksForUsage(options: unknown): boolean {
  return isObject(options) && options.include_usage === true;
}
