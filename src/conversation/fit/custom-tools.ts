import type { JsonObject } from '../../wire/json.js';
import type { Answer, AnswerPart, StreamEvent } from '../answer.js';
import type { ConversationRequest, Tool, ToolCallPart } from '../request.js';
import { type AnswerRestorer, type FitContext, type Fitted, mapCalls, mapParts } from './fitted.js';
import { MemberText, memberOf } from './member-reader.js';

/** Argument of the function that replaces a tool of free text. */
const argument = 'input';

/**
 * For most models, tools that take free text (Codex's `apply_patch`, `exec`) are replaced by functions with one text
 * argument, including their calls in the history. Calls in the answer are converted back.
 */
export function fitCustomTools(
  request: ConversationRequest,
  { rules: { customTools }, options }: FitContext,
): Fitted | null {
  if (customTools === 'always' || (customTools === 'option' && options.customTools)) return null;
  const names = new Set(request.tools.filter(({ custom }) => custom !== undefined).map(({ name }) => name));
  const turns = mapCalls(request.turns, withFunction);
  if (names.size === 0)
    return turns === request.turns ? null : { request: { ...request, turns }, restorer: null };
  return {
    request: { ...request, turns, tools: request.tools.map(asFunction) },
    restorer: new CustomCalls(names),
  };
}

function withFunction(call: ToolCallPart): ToolCallPart {
  return call.custom ? { ...call, custom: false, input: JSON.stringify({ [argument]: call.input }) } : call;
}

function asFunction(tool: Tool): Tool {
  const { custom, ...rest } = tool;
  if (custom === undefined) return tool;
  return {
    ...rest,
    description:
      [rest.description, grammarOf(custom.format)].filter((text) => text !== null).join('\n\n') || null,
    parameters: {
      type: 'object',
      properties: {
        [argument]: { type: 'string', description: 'The whole input of the tool, as plain text.' },
      },
      required: [argument],
      additionalProperties: false,
    },
    strict: null,
  };
}

/** The model is told the grammar, which the upstream would have enforced. */
function grammarOf(format: JsonObject | null): string | null {
  if (format?.type !== 'grammar' || typeof format.definition !== 'string') return null;
  const syntax = typeof format.syntax === 'string' ? ` (${format.syntax})` : '';
  return `The input must follow this grammar${syntax}:\n${format.definition}`;
}

/** Returns the text in the arguments of a call, also of one that the token limit cut. */
function freeText(args: string): string {
  const whole = memberOf(args, argument);
  if (whole !== args) return whole;
  const reader = new MemberText(argument);
  return reader.add(args) + reader.end();
}

/** Extracts the text from the arguments of the functions that replace tools of free text. */
class CustomCalls implements AnswerRestorer {
  readonly changesText = false;
  readonly #names: ReadonlySet<string>;
  /** Text of the open call, if it is of such a tool. */
  #text: MemberText | null = null;

  constructor(names: ReadonlySet<string>) {
    this.#names = names;
  }

  event(event: StreamEvent, out: StreamEvent[]): void {
    if (event.kind === 'callStart' && !event.custom && this.#names.has(event.name)) {
      this.#text = new MemberText(argument);
      out.push({ ...event, custom: true });
    } else if (event.kind === 'callArguments' && this.#text !== null) {
      const text = this.#text.add(event.text);
      if (text !== '') out.push({ ...event, text });
    } else if (event.kind === 'callEnd' && this.#text !== null) {
      const text = this.#text.end();
      const { choice, call } = event;
      if (text !== '' || this.#text.isEmpty) out.push({ kind: 'callArguments', choice, call, text });
      this.#text = null;
      out.push(event);
    } else out.push(event);
  }

  answer(answer: Answer): Answer {
    return mapParts(answer, (part) => this.#restored(part));
  }

  #restored(part: AnswerPart): AnswerPart {
    if (part.kind !== 'toolCall' || part.custom || !this.#names.has(part.name)) return part;
    return { ...part, custom: true, input: freeText(part.input) };
  }
}
