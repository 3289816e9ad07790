import type { Protocol, TargetRules } from '../../config/types.js';
import type { TextProtocolName } from '../../conversation/request.js';
import { parseJson, parseObject, textOrNull } from '../../wire/json.js';
import { findValues } from '../../wire/json-scan.js';
import { skipSpace } from '../../wire/json-skip.js';
import {
  addRule,
  clash,
  createEdits,
  editAt,
  type MemberEdit,
  type MemberPath,
  type MemberRule,
  type ObjectEdits,
  type Spelling,
} from '../../wire/member-edits.js';

/** Where the bodies of a protocol have the members that rules refer to by meaning. */
interface Places {
  /** Members with the reasoning effort. */
  readonly efforts: readonly MemberPath[];
  /** Whether efforts are written in capitals. */
  readonly upperCase: boolean;
  /** Name of the list whose objects have a `role`. */
  readonly turns: string | null;
  /** Sampling settings. */
  readonly sampling: readonly MemberPath[];
  /** Whether each name may also be in snake case. */
  readonly takesSnakeCase: boolean;
  /** Adds what the rule `fillReasoning` changes, beside the other rules; null if it changes nothing. */
  readonly fillReasoning: ((edits: ObjectEdits, rules: TargetRules) => void) | null;
  /** Adds what each form of the rule `thinking` changes. Other forms change nothing. */
  readonly thinking: Readonly<Partial<Record<ThinkingRule, (edits: ObjectEdits) => void>>>;
  /** A member that some clients repeat under another name. If it is edited, the repetition is removed. */
  readonly echo: { readonly of: string; readonly name: string } | null;
}

type ThinkingRule = NonNullable<TargetRules['thinking']>;

const penalties = [['presence_penalty'], ['frequency_penalty'], ['repetition_penalty']];
const drawing = [['temperature'], ['top_p'], ['top_k']];
const none: Places = {
  efforts: [],
  upperCase: false,
  turns: null,
  sampling: [],
  takesSnakeCase: false,
  fillReasoning: null,
  thinking: {},
  echo: null,
};

/**
 * As in the vendors' references: https://platform.openai.com/docs/api-reference/chat/create (`reasoning.effort` there is
 * OpenRouter's and Ollama's), https://platform.openai.com/docs/api-reference/responses/create,
 * https://platform.claude.com/docs/en/api/messages, https://ai.google.dev/api/generate-content#ThinkingConfig.
 */
const placesOf: Readonly<Record<TextProtocolName | 'completions', Places>> = {
  chat: {
    ...none,
    efforts: [['reasoning_effort'], ['reasoning', 'effort']],
    turns: 'messages',
    sampling: [...drawing, ...penalties],
    fillReasoning: (edits) => fillReasoning(editAt(edits, ['messages'], sameName)),
    echo: { of: 'reasoning_effort', name: 'reasoningEffort' },
    thinking: {
      enable_thinking: (edits) => replaceEffort(edits, toSwitch),
      type: (edits) => replaceEffort(edits, toType),
    },
  },
  completions: { ...none, sampling: [...drawing, ...penalties] },
  responses: {
    ...none,
    efforts: [['reasoning', 'effort']],
    turns: 'input',
    sampling: [...drawing, ...penalties],
  },
  messages: {
    ...none,
    efforts: [['output_config', 'effort']],
    turns: 'messages',
    sampling: drawing,
    fillReasoning: (edits, { thinking }) => fillThinking(editAt(edits, ['messages'], sameName), thinking),
    thinking: {
      adaptive: (edits) => changeThinking(edits, adaptiveThinking),
      never_off: (edits) =>
        changeThinking(edits, (json) => (parseObject(json)?.type === 'disabled' ? null : json)),
    },
  },
  generateContent: {
    ...none,
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

/** Returns the places in the bodies of a protocol. None if it is not a text protocol. */
function placesIn(protocol: Protocol): Places {
  return Object.hasOwn(placesOf, protocol) ? placesOf[protocol as keyof typeof placesOf] : none;
}

/** The body to which rules are applied. */
export interface RuledBody {
  /** Protocol of the body. */
  readonly protocol: Protocol;
  /** Whether the gateway wrote the body: the client's effort was mapped before. */
  readonly isTranslated: boolean;
  /** Whether the body is a request for a token count. Rules add no members to it. */
  readonly isCount: boolean;
  /** Name of the model that replaces the client's, or null. */
  readonly model: string | null;
  /** Whether `stream_options.include_usage` must be true. */
  readonly includeUsage: boolean;
}

/** Compiles the rules of a target for a kind of body. */
export function bodyEdits(rules: TargetRules, body: RuledBody): ObjectEdits {
  const { protocol } = body;
  const places = placesIn(protocol);
  const { efforts, upperCase, turns, sampling, takesSnakeCase } = places;
  const spelling = takesSnakeCase ? snakeCase : sameName;
  const edits = createEdits();
  // Images are charged by the number that the client requested.
  for (const rule of rules.members)
    if (protocol !== 'images' || rule.path[0] !== 'n') addRule(edits, rule, spelling, !body.isCount);
  const leftOut = sampling.map((path): MemberRule => ({ kind: 'drop', path }));
  for (const rule of rules.dropsSampling ? leftOut : []) {
    if (!rules.members.some((other) => clash(rule, other))) addRule(edits, rule, spelling, false);
  }
  if (rules.efforts.size > 0 && !body.isTranslated) {
    for (const path of efforts) mapWords(editAt(edits, path, spelling), rules.efforts, upperCase);
  }
  if (rules.roles.size > 0 && turns !== null) {
    const list = editAt(edits, [turns], spelling);
    list.each ??= createEdits();
    mapWords(editAt(list.each, ['role'], spelling), rules.roles, false);
  }
  if (rules.fillsReasoning && !body.isCount) places.fillReasoning?.(edits, rules);
  if (rules.thinking !== null) places.thinking[rules.thinking]?.(edits);
  const { echo } = places;
  if (echo !== null && edits.members.has(echo.of)) editAt(edits, [echo.name], sameName).isDropped = true;
  if (body.model !== null) put(edits, ['model'], JSON.stringify(body.model));
  if (body.includeUsage) put(edits, ['stream_options', 'include_usage'], 'true');
  return edits;
}

function put(edits: ObjectEdits, path: readonly string[], json: string): void {
  addRule(edits, { kind: 'set', path, json }, sameName, true);
}

const sameName: Spelling = (name) => name;

/** Parsers of protocol buffers accept both spellings of a name (https://protobuf.dev/programming-guides/json/). */
const snakeCase: Spelling = (name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Matches words in any case. */
function mapWords(edit: MemberEdit, words: ReadonlyMap<string, string>, upperCase: boolean): void {
  edit.change = (json) => {
    const word = words.get(wordOf(json) ?? '');
    return word === undefined ? json : JSON.stringify(upperCase ? word.toUpperCase() : word);
  };
}

function wordOf(json: string): string | null {
  return json.startsWith('"') ? (textOrNull(parseJson(json))?.toLowerCase() ?? null) : null;
}

function changeThinking(edits: ObjectEdits, change: MemberEdit['change']): void {
  editAt(edits, ['thinking'], sameName).change = change;
}

function replaceEffort(edits: ObjectEdits, become: MemberEdit['become']): void {
  editAt(edits, ['reasoning_effort'], sameName).become = become;
}

/**
 * Replaces a budget by adaptive thinking. Removes a setting that turns thinking off
 * (https://platform.claude.com/docs/en/about-claude/models/migration-guide).
 */
function adaptiveThinking(json: string): string | null {
  const thinking = parseObject(json);
  if (thinking?.type === 'disabled') return null;
  if (thinking?.type !== 'enabled') return json;
  const { budget_tokens: _, ...rest } = thinking;
  return JSON.stringify({ ...rest, type: 'adaptive' });
}

/** https://www.alibabacloud.com/help/en/model-studio/deep-thinking */
function toSwitch(json: string): [string, string][] | null {
  const word = wordOf(json);
  return word === null ? null : [['enable_thinking', word === 'none' ? 'false' : 'true']];
}

const filler = JSON.stringify('.');

/**
 * Replaces reasoning that a client has lost or that another model wrote. DeepSeek refuses a message with calls and
 * without reasoning (https://api-docs.deepseek.com/guides/thinking_mode). Kimi also refuses empty reasoning.
 */
function fillReasoning(list: MemberEdit): void {
  list.each ??= createEdits();
  editAt(list.each, ['role'], sameName).become = (json) =>
    wordOf(json) === 'assistant'
      ? [
          ['role', json],
          ['reasoning_content', filler],
        ]
      : null;
  // Reasoning that is present is kept.
  editAt(list.each, ['reasoning_content'], sameName).change = (json) =>
    json === 'null' || json === '""' ? filler : json;
}

/**
 * The same by a block of thinking. DeepSeek refuses a message with calls and without one
 * (https://github.com/QwenLM/qwen-code/pull/3788).
 */
function fillThinking(list: MemberEdit, rule: ThinkingRule | null): void {
  list.each ??= createEdits();
  // These rules remove what would turn thinking off.
  const isAlwaysOn = rule === 'adaptive' || rule === 'never_off';
  editAt(list.each, ['content'], sameName).lead = {
    json: `{"type":"thinking","thinking":${filler},"signature":""}`,
    beside: 'tool_use',
    unless: ['thinking', 'redacted_thinking'],
    where: { name: 'role', word: 'assistant' },
    isOff: (body) => !isAlwaysOn && thinksNot(body),
  };
}

/** Whether a messages body turns thinking off. */
function thinksNot(body: Buffer): boolean {
  const [thinking = null] = findValues(body, skipSpace(body, 0), ['thinking']);
  return (
    thinking !== null && parseObject(body.toString('utf8', thinking.start, thinking.end))?.type === 'disabled'
  );
}

/** https://api-docs.deepseek.com/guides/thinking_mode, https://docs.z.ai/api-reference/llm/chat-completion */
function toType(json: string): [string, string][] | null {
  return wordOf(json) === 'none' ? [['thinking', '{"type":"disabled"}']] : null;
}
