import type { GatewayError } from '../errors.js';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  LOWER_F,
  LOWER_N,
  LOWER_T,
  MINUS,
  NINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  ZERO,
} from '../wire/bytes.js';
import { isObject, type JsonObject, objectOf, requireCheapBody } from '../wire/json.js';
import { type BodySpans, type Span, scanBody } from '../wire/json-scan.js';
import {
  afterColon,
  endOfLiteral,
  endOfNumber,
  endOfPlain,
  endOfText,
  endOfValue,
  mostDepth,
  skipSpace,
} from '../wire/json-skip.js';
import { checkMembers, type FoundMembers, type MemberGuard, noMembers } from '../wire/member-guard.js';
import {
  backgroundMember,
  continuationMembers,
  isAbsent,
  itemsMember,
  type SteeringMember,
  toolsMember,
} from '../wire/routed-members.js';
import { parseBody } from '../wire/skeleton.js';
import {
  type AcceptNode,
  compileBody,
  guardedKeys,
  guards,
  type NumberRule,
  type ObjectRule,
  type Property,
} from './accept-node.js';
import { asSchema } from './node.js';

/** The findings of an accepted body. */
export interface Accepted {
  readonly scan: BodySpans;
  /** Empty if the body names none. */
  readonly model: string;
  readonly stream: boolean;
  /** Whether the client itself requested the usage chunk. */
  readonly includeUsage: boolean;
  readonly output: OutputSpans;
  /** Whether it has a member of `continuationMembers` that is not null. */
  readonly goesOn: boolean;
  /** Whether its `background` is neither null nor false. */
  readonly inBackground: boolean;
  /** Span of the value of `tools`; null without one. */
  readonly tools: Span | null;
  /** Whether an item of the list in `itemsMember` has `tools` that are not null; false if the schema does not want it. */
  readonly itemTools: boolean;
  /** Members found besides those that are read. */
  readonly members: FoundMembers;
}

/** Spans of the values of `outputMembers` in a body. */
export interface OutputSpans {
  readonly maxTokens: readonly Span[];
  readonly choices: Span | null;
  readonly config: Span | null;
}

const noSpans: readonly Span[] = [];
const noOutputSpans: OutputSpans = { maxTokens: noSpans, choices: null, config: null };
const usageKey = Uint8Array.from(Buffer.from('include_usage', 'latin1'));

/** Up to this many digits, an integer is exact. */
const exactDigits = 15;

/**
 * Creates a check of a schema that reads a body's bytes once, without parsing it. It is compiled at the first body.
 * @param schema Request body of an endpoint.
 * @param guard Finds ambiguous members of the body.
 * @param own A key without which a body is left to the full check, or null.
 * @param wantsItemTools Whether the tools of items are looked for.
 * @returns A function that accepts a whole body, or returns null if it cannot decide. What it accepts, `scanBody`,
 * `parseBody` and the schema accept, too, with the same findings. It is synchronous and must not be called from within
 * itself, since all calls share one object for the state of the walk.
 */
export function acceptorOf(
  schema: unknown,
  guard: MemberGuard,
  own: string | null = null,
  wantsItemTools = false,
): (body: Buffer) => Accepted | null {
  let walk: Walk | null | undefined;
  return (body) => {
    if (walk === undefined) {
      const rule = compileBody(asSchema(schema), { own, wantsItemTools, guard });
      walk = rule === null ? null : new Walk(rule);
    }
    return walk === null ? null : walk.accept(body);
  };
}

const noBody: Buffer = Buffer.alloc(0);

/** A power of two. */
const buckets = 256;
/** Longer names are left to the full check. */
const longestName = 128;

/**
 * Caches strings of recurring names, such as those of models. A cached name costs a comparison of its bytes; a new one
 * replaces another, so the table stays bounded whatever clients send.
 */
class NameTable {
  readonly #names = new Array<string>(buckets).fill('');

  /**
   * Reads the inside of a JSON string.
   * @returns The text, or null if it is long or not plain ASCII, which is left to the full check.
   */
  read(body: Buffer, start: number, end: number): string | null {
    const length = end - start;
    if (length > longestName) return null;
    let hash = length;
    for (let at = start; at < end; at++) {
      const byte = body[at] as number;
      if (byte < 0x20 || byte > 0x7e || byte === BACKSLASH) return null;
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    const bucket = (hash ^ (hash >>> 8)) & (buckets - 1);
    const known = this.#names[bucket] as string;
    if (known.length === length && holdsText(body, start, known)) return known;
    const name = body.toString('latin1', start, end);
    this.#names[bucket] = name;
    return name;
  }
}

function holdsText(body: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (body[start + i] !== text.charCodeAt(i)) return false;
  }
  return true;
}

/** A walk over a body. Each step takes the offset of an element's start, and returns the offset after it, or -1. */
class Walk {
  readonly #rule: ObjectRule;
  readonly #models = new NameTable();
  #body = noBody;
  /** Bounds of the guarded keys' values; -1 if a key was not found. */
  #modelStart = -1;
  #modelEnd = -1;
  #streamStart = -1;
  #optionsStart = -1;
  #optionsEnd = -1;
  #usageStart = -1;
  #usageEnd = -1;
  /** Null without a limit of the output. */
  #maxTokens: Span[] | null = null;
  #choicesStart = -1;
  #choicesEnd = -1;
  #configStart = -1;
  #configEnd = -1;
  #continues = false;
  #inBackground = false;
  #toolsStart = -1;
  #toolsEnd = -1;
  #itemTools = false;
  /** Members that would steer an upstream. */
  #steering: SteeringMember[] = [];

  constructor(rule: ObjectRule) {
    this.#rule = rule;
  }

  accept(body: Buffer): Accepted | null {
    this.#body = body;
    this.#modelStart = -1;
    this.#streamStart = -1;
    this.#optionsStart = -1;
    this.#usageStart = -1;
    this.#maxTokens = null;
    this.#choicesStart = -1;
    this.#configStart = -1;
    this.#continues = false;
    this.#inBackground = false;
    this.#toolsStart = -1;
    this.#itemTools = false;
    if (this.#steering.length > 0) this.#steering = [];
    const accepted = this.#run(body);
    this.#body = noBody;
    return accepted;
  }

  #run(body: Buffer): Accepted | null {
    const start = skipSpace(body, 0);
    if (body[start] !== OPEN_BRACE) return null;
    const end = this.#members(this.#rule, start, mostDepth - 1);
    if (end === -1 || skipSpace(body, end) !== body.length) return null;
    const model = this.#modelName();
    if (model === null) return null;
    if (this.#optionsStart !== -1 && body[this.#optionsStart] === OPEN_BRACE && !this.#findUsage())
      return null;
    return {
      scan: {
        open: start + 1,
        model: spanOf(this.#modelStart, this.#modelEnd),
        streamOptions: spanOf(this.#optionsStart, this.#optionsEnd),
        includeUsage: spanOf(this.#usageStart, this.#usageEnd),
      },
      model,
      stream: this.#streamStart !== -1 && body[this.#streamStart] === LOWER_T,
      includeUsage: this.#usageStart !== -1 && body[this.#usageStart] === LOWER_T,
      output: this.#outputSpans(),
      goesOn: this.#continues,
      inBackground: this.#inBackground,
      tools: spanOf(this.#toolsStart, this.#toolsEnd),
      itemTools: this.#itemTools,
      members: this.#steering.length === 0 ? noMembers : { ...noMembers, steering: this.#steering },
    };
  }

  #outputSpans(): OutputSpans {
    if (this.#maxTokens === null && this.#choicesStart === -1 && this.#configStart === -1)
      return noOutputSpans;
    return {
      maxTokens: this.#maxTokens ?? noSpans,
      choices: spanOf(this.#choicesStart, this.#choicesEnd),
      config: spanOf(this.#configStart, this.#configEnd),
    };
  }

  #value(node: AcceptNode, at: number, levels: number): number {
    if (node.anything) return endOfValue(this.#body, at, levels);
    switch (this.#body[at]) {
      case QUOTE:
        return node.text === null ? -1 : this.#text(node.text, at + 1);
      case OPEN_BRACE:
        return node.object === null || levels === 0 ? -1 : this.#object(node.object, at, levels - 1);
      case OPEN_BRACKET:
        return node.items === null || levels === 0 ? -1 : this.#array(node.items, at, levels - 1);
      case LOWER_T:
        return node.yes ? endOfLiteral(this.#body, at) : -1;
      case LOWER_F:
        return node.no ? endOfLiteral(this.#body, at) : -1;
      case LOWER_N:
        return node.nil ? endOfLiteral(this.#body, at) : -1;
      default:
        return node.number === null ? -1 : this.#number(node.number, at);
    }
  }

  #text(rule: 'any' | 'filled', from: number): number {
    const end = endOfText(this.#body, from);
    return end === -1 || (end === from && rule === 'filled') ? -1 : end + 1;
  }

  #number(rule: NumberRule, from: number): number {
    const body = this.#body;
    const end = endOfNumber(body, from);
    if (end === -1 || !rule.integer) return end;
    const first = body[from] === MINUS ? from + 1 : from;
    if (end - first > exactDigits) return -1;
    let value = 0;
    for (let at = first; at < end; at++) {
      const byte = body[at] as number;
      if (byte > NINE || byte < ZERO) return -1;
      value = value * 10 + byte - ZERO;
    }
    if (first !== from) value = -value;
    return value < rule.minimum || value > rule.maximum ? -1 : end;
  }

  #array(items: AcceptNode, open: number, levels: number): number {
    const body = this.#body;
    let at = skipSpace(body, open + 1);
    if (body[at] === CLOSE_BRACKET) return at + 1;
    for (;;) {
      const end = this.#value(items, at, levels);
      if (end === -1) return -1;
      at = skipSpace(body, end);
      if (body[at] === CLOSE_BRACKET) return at + 1;
      if (body[at] !== COMMA) return -1;
      at = skipSpace(body, at + 1);
    }
  }

  #object(rule: ObjectRule, open: number, levels: number): number {
    return rule.open ? endOfValue(this.#body, open, levels + 1) : this.#members(rule, open, levels);
  }

  #members(rule: ObjectRule, open: number, levels: number): number {
    const body = this.#body;
    let missing = rule.required;
    let low = 0;
    let high = 0;
    let at = skipSpace(body, open + 1);
    if (body[at] === CLOSE_BRACE) return missing === 0 ? at + 1 : -1;
    for (;;) {
      if (body[at] !== QUOTE) return -1;
      const close = endOfPlain(body, at + 1);
      if (close === -1) return -1;
      const property = findProperty(rule, body, at + 1, close);
      if (property === null) {
        if (rule.guard?.concerns(body, at + 1, close) && !this.#steers(rule.guard, at + 1, close)) return -1;
      } else {
        if ((low & property.low) !== 0 || (high & property.high) !== 0) return -1;
        low |= property.low;
        high |= property.high;
      }
      at = afterColon(body, close);
      if (at === -1) return -1;
      const end = property === null ? endOfValue(body, at, levels) : this.#value(property.node, at, levels);
      if (end === -1) return -1;
      if (property !== null) {
        missing &= ~property.bit;
        if (property.guard !== 0 && !this.#recordSpan(property.guard, at, end)) return -1;
      }
      at = skipSpace(body, end);
      if (body[at] === CLOSE_BRACE) return missing === 0 ? at + 1 : -1;
      if (body[at] !== COMMA) return -1;
      at = skipSpace(body, at + 1);
    }
  }

  /** Records an ambiguous name if it is a steering one with a value. @returns whether it is a steering one */
  #steers(guard: MemberGuard, start: number, end: number): boolean {
    const entry = guard.entryOf(this.#body.toString('latin1', start, end));
    if (entry?.kind !== 'steering' || entry.within !== null) return false;
    const isValue = !isAbsent(entry.steering, this.#body[afterColon(this.#body, end)]);
    if (isValue) this.#steering.push(entry.steering);
    return true;
  }

  /** Records the span of a guarded key's value. @returns false for a repeated key that must be unique */
  #recordSpan(guard: number, start: number, end: number): boolean {
    if (guard === 1) {
      if (this.#modelStart !== -1) return false;
      this.#modelStart = start;
      this.#modelEnd = end;
    } else if (guard === 2) {
      if (this.#streamStart !== -1) return false;
      this.#streamStart = start;
    } else if (guard === guards.lastUnique) {
      if (this.#optionsStart !== -1) return false;
      this.#optionsStart = start;
      this.#optionsEnd = end;
    } else this.#recordOutput(guard, start, end);
    return true;
  }

  #recordOutput(guard: number, start: number, end: number): void {
    if (guard <= guards.lastMaxTokens) {
      if (this.#maxTokens === null) this.#maxTokens = [{ start, end }];
      else this.#maxTokens.push({ start, end });
    } else if (guard === guards.choices) {
      this.#choicesStart = start;
      this.#choicesEnd = end;
    } else if (guard <= guards.lastConfig) {
      this.#configStart = start;
      this.#configEnd = end;
    } else if (guard === guards.itemTools) {
      if (this.#body[start] !== LOWER_N) this.#itemTools = true;
    } else if (guard === guardedKeys.length) {
      this.#toolsStart = start;
      this.#toolsEnd = end;
    } else if (guard === guardedKeys.length - 1) {
      this.#inBackground = this.#body[start] !== LOWER_N && this.#body[start] !== LOWER_F;
    } else if (this.#body[start] !== LOWER_N) this.#continues = true;
  }

  /** The model's name; empty without one, null for one that is left to the full check. */
  #modelName(): string | null {
    const start = this.#modelStart;
    if (start === -1 || this.#body[start] !== QUOTE) return '';
    return this.#models.read(this.#body, start + 1, this.#modelEnd - 1);
  }

  /** Finds `include_usage` in the options, which the walk has already accepted. */
  #findUsage(): boolean {
    const body = this.#body;
    let at = skipSpace(body, this.#optionsStart + 1);
    while (body[at] === QUOTE) {
      const close = endOfPlain(body, at + 1);
      const start = close === -1 ? -1 : afterColon(body, close);
      if (start === -1) return false;
      const end = endOfValue(body, start, mostDepth);
      if (end === -1) return false;
      if (close - at - 1 === usageKey.length && holds(body, at + 1, usageKey)) {
        if (this.#usageStart !== -1) return false;
        this.#usageStart = start;
        this.#usageEnd = end;
      }
      at = skipSpace(body, end);
      if (body[at] === COMMA) at = skipSpace(body, at + 1);
    }
    return true;
  }
}

function spanOf(start: number, end: number): Span | null {
  return start === -1 ? null : { start, end };
}

function findProperty(rule: ObjectRule, body: Buffer, start: number, end: number): Property | null {
  const length = end - start;
  if (length >= rule.byLength.length) return null;
  let property = rule.byLength[length] as Property | null;
  while (property !== null && !holds(body, start, property.name)) property = property.next;
  return property;
}

function holds(body: Buffer, at: number, bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) {
    if (body[at + i] !== bytes[i]) return false;
  }
  return true;
}

/** A check that is built once and run for every request. */
export interface CompiledSchema {
  /** Accepts a body from its bytes alone, or returns null; `check` then decides on the parsed value. */
  readonly accept: (body: Buffer) => Accepted | null;
  /** Whether the tools of items are looked for. */
  readonly wantsItemTools: boolean;
  /** Whether a value satisfies the schema and is not a body of another endpoint. */
  check(value: unknown): boolean;
  /** Explains why `check` refused a value. Slow; for a value that passed, the result is a general refusal. */
  explain(value: unknown): GatewayError;
  /** Finds ambiguous members of a body; `accept` accepts only bodies in which it finds none. */
  readonly guard: MemberGuard;
}

/** The findings of a valid request body that later phases need. */
export interface ValidatedBody extends Omit<Accepted, 'output'> {
  /** Null if not searched for. */
  readonly output: OutputSpans | null;
}

/** Bytes per value in a list of numbers, the densest body. Bodies of this times `mostValues` take milliseconds to walk. */
const walkedPerValue = 2;

/**
 * Validates the body of a request that is passed through unchanged.
 * @param body The whole body, decoded from any content coding. Not changed, not kept.
 * @param schema The endpoint's check.
 * @param mostValues `limits.bodyValues`
 * @returns The findings that later phases need.
 * @throws {GatewayError} Of status 400, saying what is wrong and where.
 */
export function validateBody(body: Buffer, schema: CompiledSchema, mostValues: number): ValidatedBody {
  // Estimating the cost of parsing takes a walk of its own, which short bodies do not need.
  const isShort = body.length <= mostValues * walkedPerValue;
  if (!isShort) requireCheapBody(body, mostValues);
  const accepted = schema.accept(body);
  if (accepted !== null) return accepted;
  if (isShort) requireCheapBody(body, mostValues);
  return parseAndCheck(body, schema);
}

const noBodySpans: BodySpans = { open: 0, model: null, streamOptions: null, includeUsage: null };

/** The findings of a form, or of another body that is not passed on unchanged. */
export function readValidated(model: string, stream: boolean): ValidatedBody {
  return {
    scan: noBodySpans,
    model,
    stream,
    includeUsage: true,
    output: null,
    goesOn: false,
    inBackground: false,
    tools: null,
    itemTools: false,
    members: noMembers,
  };
}

/** Decides on a body that `accept` did not, and explains a refusal. */
function parseAndCheck(body: Buffer, schema: CompiledSchema): ValidatedBody {
  const scan = scanBody(body);
  const value = parseBody(body, scan);
  const members = checkMembers(body, schema.guard);
  if (!isObject(value) || !schema.check(value)) throw schema.explain(value);
  const { model, stream, stream_options: options } = value;
  const background = value[backgroundMember] ?? false;
  return {
    scan,
    model: typeof model === 'string' ? model : '',
    stream: stream === true,
    includeUsage: isObject(options) && options.include_usage === true,
    output: null,
    goesOn: continuationMembers.some((name) => (value[name] ?? null) !== null),
    inBackground: background !== false,
    // The exact span is unknown here.
    tools: (value[toolsMember] ?? null) === null ? null : { start: 0, end: body.length },
    itemTools: schema.wantsItemTools && hasItemTools(value),
    members,
  };
}

function hasItemTools({ [itemsMember]: items }: JsonObject): boolean {
  return Array.isArray(items) && items.some((item) => (objectOf(item)[toolsMember] ?? null) !== null);
}
