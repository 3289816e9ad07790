import type { Answer, Prompt } from '../answer/prompt.js';
import { seal } from '../answer/seal.js';
import { clip, countTokens, words } from '../answer/tokens.js';
import { logprobs } from '../chat/parts.js';
import { created } from '../openai/format.js';
import type { ResponsesRequest } from './request.js';

/** An item of an answer, whole. */
export type OutputItem =
  | ReasoningItem
  | MessageItem
  | FunctionCallItem
  | CustomCallItem
  | { readonly type: 'compaction'; readonly id: string; readonly encrypted_content: string };

export interface ReasoningItem {
  readonly id: string;
  readonly type: 'reasoning';
  readonly summary: readonly { readonly type: 'summary_text'; readonly text: string }[];
  readonly encrypted_content?: string;
  readonly status: Status;
}

export interface MessageItem {
  readonly id: string;
  readonly type: 'message';
  readonly status: Status;
  readonly role: 'assistant';
  readonly content: readonly MessagePart[];
}

export type MessagePart =
  | {
      readonly type: 'output_text';
      readonly text: string;
      readonly annotations: readonly object[];
      readonly logprobs: readonly object[];
    }
  | { readonly type: 'refusal'; readonly refusal: string };

export interface FunctionCallItem {
  readonly id: string;
  readonly type: 'function_call';
  readonly status: Status;
  readonly call_id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface CustomCallItem {
  readonly id: string;
  readonly type: 'custom_tool_call';
  readonly status: Status;
  readonly call_id: string;
  readonly name: string;
  readonly input: string;
}

type Status = 'completed' | 'incomplete';

/** The members of a response that change while it is generated. */
export interface Progress {
  readonly status: string;
  readonly output: readonly object[];
  readonly incomplete: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly usage: object | null;
}

/** A response that was just started. */
export const inProgress: Progress = {
  status: 'in_progress',
  output: [],
  incomplete: null,
  error: null,
  usage: null,
};

const statuses = ['completed', 'failed', 'in_progress', 'incomplete', 'cancelled', 'queued'];

/** The response object; it repeats the settings of its request. */
export function responseObject(asked: ResponsesRequest, progress: Progress): object {
  const { settings, model, prompt } = asked;
  const or = (name: string, usual: unknown): unknown => settings[name] ?? usual;
  return {
    id: `resp_${prompt.digest.slice(0, 32)}`,
    object: 'response',
    created_at: created,
    status: progress.status,
    background: false,
    completed_at: progress.status === 'completed' ? created : null,
    error: progress.error,
    incomplete_details: progress.incomplete === null ? null : { reason: progress.incomplete },
    instructions: or('instructions', null),
    max_output_tokens: or('max_output_tokens', null),
    max_tool_calls: or('max_tool_calls', null),
    model,
    output: progress.output,
    frequency_penalty: 0,
    parallel_tool_calls: or('parallel_tool_calls', true),
    presence_penalty: 0,
    previous_response_id: null,
    prompt_cache_key: or('prompt_cache_key', null),
    reasoning: { effort: null, summary: null, ...(settings.reasoning as object | null | undefined) },
    safety_identifier: or('safety_identifier', null),
    service_tier: 'default',
    store: or('store', true),
    temperature: or('temperature', 1),
    text: { format: { type: 'text' }, verbosity: 'medium', ...(settings.text as object | null | undefined) },
    tool_choice: or('tool_choice', 'auto'),
    tools: or('tools', []),
    top_logprobs: or('top_logprobs', 0),
    top_p: or('top_p', 1),
    truncation: or('truncation', 'disabled'),
    usage: progress.usage,
    user: or('user', null),
    metadata: or('metadata', {}),
  };
}

/** The items of an answer in order; an item cut by a limit is incomplete. */
export function outputItems(asked: ResponsesRequest, answer: Answer): readonly OutputItem[] {
  const suffix = asked.prompt.digest.slice(0, 24);
  const items: OutputItem[] = [];
  if (answer.reasoning !== '') {
    const { showsReasoning, encryptsReasoning } = asked;
    items.push({
      id: `rs_${suffix}`,
      type: 'reasoning',
      summary: showsReasoning ? [{ type: 'summary_text', text: answer.reasoning }] : [],
      ...(encryptsReasoning ? { encrypted_content: seal('reasoning', answer.reasoning) } : {}),
      status: 'completed',
    });
  }
  if (answer.refusal !== '' || answer.text !== '') {
    const content: readonly MessagePart[] = [
      answer.refusal === '' ? textPart(asked, answer.text) : { type: 'refusal', refusal: answer.refusal },
    ];
    items.push({ id: `msg_${suffix}`, type: 'message', status: 'completed', role: 'assistant', content });
  }
  for (const { id, name, input, custom } of answer.calls) {
    const own = id.replace('call_', '');
    const shared = { status: 'completed', call_id: id, name } as const;
    items.push(
      custom
        ? { id: `ctc_${own}`, type: 'custom_tool_call', ...shared, input }
        : { id: `fc_${own}`, type: 'function_call', ...shared, arguments: input },
    );
  }
  const last = items.at(-1);
  if (answer.finish === 'length' && last !== undefined && last.type !== 'compaction') {
    items[items.length - 1] = { ...last, status: 'incomplete' };
  }
  return items;
}

function textPart(asked: ResponsesRequest, text: string): MessagePart {
  const { topLogprobs } = asked;
  const detail = topLogprobs === null ? [] : logprobs(words(text), topLogprobs);
  return { type: 'output_text', text, annotations: [], logprobs: detail };
}

/** The state of a response at its end. */
export function ended(asked: ResponsesRequest, answer: Answer, output: readonly object[]): Progress {
  const cut = answer.finish === 'length' ? 'max_output_tokens' : null;
  const word = answer.finishWord;
  const isStatus = word !== null && statuses.includes(word);
  const incomplete = isStatus ? (word === 'incomplete' ? (cut ?? 'max_output_tokens') : null) : (word ?? cut);
  return {
    status: isStatus ? word : incomplete === null ? 'completed' : 'incomplete',
    output,
    incomplete,
    error: word === 'failed' ? failure : null,
    usage: responsesUsage(asked.prompt.inputTokens, answer.outputTokens, answer.reasoningTokens),
  };
}

/** The error of a failed response. */
export const failure = {
  code: 'server_error',
  message: 'The simulator was asked for an error in the stream.',
};

/** The `usage` of a response. */
function responsesUsage(input: number, output: number, reasoning: number): object {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}

/** The compacted form of a conversation, with its tokens. */
export function compaction(
  prompt: Prompt,
  items: readonly object[],
): { readonly item: OutputItem; readonly usage: object } {
  const before = prompt.recalled === undefined ? '' : ` after: ${clip(prompt.recalled, 400)}`;
  const text = `Simulated summary of ${items.length} items, the last about: ${clip(prompt.plainText, 400)}${before}`;
  return {
    item: {
      id: `cmp_${prompt.digest.slice(0, 24)}`,
      type: 'compaction',
      encrypted_content: seal('compaction', text),
    },
    usage: responsesUsage(prompt.inputTokens, countTokens(text), 0),
  };
}
