import type { Protocol } from '../../config/types.js';
import type { TextProtocolName } from '../../conversation/request.js';
import type { MemberPath } from '../../wire/member-rule.js';

/** Where the bodies of a protocol have what rules speak of by its meaning. */
interface Places {
  /** Words for how much a model is to reason. */
  readonly efforts: readonly MemberPath[];
  /** Efforts are written in capitals. */
  readonly upperCase: boolean;
  /** The list whose objects have a `role`. */
  readonly turns: string | null;
  /** How the next token is drawn. */
  readonly sampling: readonly MemberPath[];
  /** Each name may be in snake case, too. */
  readonly takesSnakeCase: boolean;
}

const penalties = [['presence_penalty'], ['frequency_penalty'], ['repetition_penalty']];
const drawing = [['temperature'], ['top_p'], ['top_k']];
const none: Places = { efforts: [], upperCase: false, turns: null, sampling: [], takesSnakeCase: false };

/**
 * As the vendors' references have them:
 * https://platform.openai.com/docs/api-reference/chat/create (`reasoning.effort` there is OpenRouter's and Ollama's),
 * https://platform.openai.com/docs/api-reference/responses/create,
 * https://platform.claude.com/docs/en/api/messages,
 * https://ai.google.dev/api/generate-content#ThinkingConfig.
 */
const places: Readonly<Record<TextProtocolName | 'completions', Places>> = {
  chat: {
    efforts: [['reasoning_effort'], ['reasoning', 'effort']],
    upperCase: false,
    turns: 'messages',
    sampling: [...drawing, ...penalties],
    takesSnakeCase: false,
  },
  completions: { ...none, sampling: [...drawing, ...penalties] },
  responses: {
    efforts: [['reasoning', 'effort']],
    upperCase: false,
    turns: 'input',
    sampling: [...drawing, ...penalties],
    takesSnakeCase: false,
  },
  messages: {
    efforts: [['output_config', 'effort']],
    upperCase: false,
    turns: 'messages',
    sampling: drawing,
    takesSnakeCase: false,
  },
  generateContent: {
    efforts: [['generationConfig', 'thinkingConfig', 'thinkingLevel']],
    upperCase: true,
    turns: 'contents',
    sampling: ['temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty'].map((name) => [
      'generationConfig',
      name,
    ]),
    takesSnakeCase: true,
  },
};

/** What the bodies of a protocol have; nothing where the protocol is none of text. */
export function placesIn(protocol: Protocol): Places {
  return Object.hasOwn(places, protocol) ? places[protocol as keyof typeof places] : none;
}
