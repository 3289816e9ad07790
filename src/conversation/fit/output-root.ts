import type { JsonObject } from '../../wire/json.js';
import type { Answer, AnswerPart } from '../answer.js';
import type { StreamEvent } from '../events.js';
import type { ConversationRequest, OutputFormat } from '../request.js';
import type { AnswerRestorer, FitContext, Fitted } from './fitted.js';
import { type MemberReader, MemberText, MemberValue } from './member-reader.js';
import { mapSchemas } from './schema.js';

/** Of the object that stands around another value. */
const member = 'value';
/** What is named by its place at the root stays there. */
const shared = ['$defs', 'definitions'] as const;

type SchemaFormat = Extract<OutputFormat, { readonly kind: 'schema' }>;

/**
 * The schema of an answer may be of any value for generateContent, and of an object alone for the others
 * (https://platform.openai.com/docs/guides/structured-outputs, "Root objects must not be anyOf and must be an object"):
 * another value is asked for as the member of one, and taken out of it.
 */
export function fitOutputRoot(
  request: ConversationRequest,
  { rules: { outputRoot } }: FitContext,
): Fitted | null {
  const { format } = request;
  if (outputRoot === 'any' || format?.kind !== 'schema' || isOfObject(format.schema)) return null;
  return {
    request: { ...request, format: wrapped(format) },
    restorer: new MemberTaker(format.bare === true),
  };
}

/** A schema that says nothing of its type is left to the vendor. */
function isOfObject({
  type,
  anyOf,
  oneOf,
  allOf,
  enum: values,
  const: value,
  items,
  $ref,
}: JsonObject): boolean {
  if (type !== undefined) return type === 'object';
  return [anyOf, oneOf, allOf, values, value, items, $ref].every((each) => each === undefined);
}

function wrapped(format: SchemaFormat): SchemaFormat {
  const { $schema: _dialect, $defs, definitions, ...schema } = mapSchemas(format.schema, withMovedRef);
  return {
    ...format,
    schema: {
      type: 'object',
      properties: { [member]: schema },
      required: [member],
      additionalProperties: false,
      ...($defs === undefined ? {} : { $defs }),
      ...(definitions === undefined ? {} : { definitions }),
    },
  };
}

function withMovedRef(schema: JsonObject): JsonObject {
  const { $ref } = schema;
  if (typeof $ref !== 'string' || ($ref !== '#' && !$ref.startsWith('#/'))) return schema;
  if (shared.some((name) => $ref.startsWith(`#/${name}/`))) return schema;
  return { ...schema, $ref: `#/properties/${member}${$ref.slice(1)}` };
}

/** Takes the value out of the object again. */
class MemberTaker implements AnswerRestorer {
  readonly changesText = true;
  readonly #isBare: boolean;
  /** By the numbers of their choices. */
  readonly #readers = new Map<number, MemberReader>();

  /** @param isBare the value is a word, which the client expects without quotes */
  constructor(isBare: boolean) {
    this.#isBare = isBare;
  }

  event(event: StreamEvent, out: StreamEvent[]): void {
    if (event.kind === 'text') {
      let reader = this.#readers.get(event.choice);
      if (reader === undefined) {
        reader = this.#reader();
        this.#readers.set(event.choice, reader);
      }
      const text = reader.add(event.text);
      if (text !== '') out.push({ ...event, text });
      return;
    }
    if (event.kind === 'finish') {
      const rest = this.#readers.get(event.choice)?.end() ?? '';
      if (rest !== '') out.push({ kind: 'text', choice: event.choice, text: rest });
    }
    out.push(event);
  }

  answer(answer: Answer): Answer {
    return {
      ...answer,
      choices: answer.choices.map((choice) => ({ ...choice, parts: this.#taken(choice.parts) })),
    };
  }

  #taken(parts: readonly AnswerPart[]): AnswerPart[] {
    const reader = this.#reader();
    const last = parts.findLastIndex(({ kind }) => kind === 'text');
    return parts.map((part, index) => {
      if (part.kind !== 'text') return part;
      return { ...part, text: reader.add(part.text) + (index === last ? reader.end() : '') };
    });
  }

  #reader(): MemberReader {
    return this.#isBare ? new MemberText(member) : new MemberValue(member);
  }
}
