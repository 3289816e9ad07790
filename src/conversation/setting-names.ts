import type { LeftOut } from './left-out.js';
import type { ConversationRequest, TextProtocolName } from './request.js';

/** Settings that some protocol has no member for, and without which an answer is still one to the question. */
export type Setting =
  | 'seed'
  | 'presencePenalty'
  | 'frequencyPenalty'
  | 'verbosity'
  | 'user'
  | 'parallelCalls'
  | 'strict'
  | 'detail'
  | 'serving';
/** More that an encoder may have to leave out for a target. */
type NamedSetting = Exclude<Setting, 'serving'> | 'temperature' | 'topP' | 'topK' | 'stop' | 'signature';

/**
 * What each protocol calls them; a protocol that lacks a setting never asks for it. What may not be dropped is in
 * `protocols/unsupported.ts`.
 */
const droppableNames: Readonly<Record<TextProtocolName, Partial<Readonly<Record<NamedSetting, string>>>>> = {
  chat: {
    temperature: 'temperature',
    topP: 'top_p',
    topK: 'top_k',
    seed: 'seed',
    presencePenalty: 'presence_penalty',
    frequencyPenalty: 'frequency_penalty',
    verbosity: 'verbosity',
    user: 'user',
    parallelCalls: 'parallel_tool_calls',
    strict: 'strict',
    detail: 'detail',
    stop: 'stop',
    signature: 'reasoning_content',
  },
  responses: {
    temperature: 'temperature',
    topP: 'top_p',
    verbosity: 'text.verbosity',
    user: 'user',
    parallelCalls: 'parallel_tool_calls',
    strict: 'strict',
    detail: 'detail',
    signature: 'encrypted_content',
  },
  messages: {
    temperature: 'temperature',
    topP: 'top_p',
    topK: 'top_k',
    user: 'metadata.user_id',
    parallelCalls: 'tool_choice.disable_parallel_tool_use',
    strict: 'strict',
    stop: 'stop_sequences',
    signature: 'signature',
  },
  generateContent: {
    signature: 'thoughtSignature',
    stop: 'generationConfig.stopSequences',
    temperature: 'generationConfig.temperature',
    topP: 'generationConfig.topP',
    topK: 'generationConfig.topK',
    seed: 'generationConfig.seed',
    presencePenalty: 'generationConfig.presencePenalty',
    frequencyPenalty: 'generationConfig.frequencyPenalty',
  },
};

/** Tells the name of a setting that is left out as the client wrote it. */
export function leaveOut(
  { from }: Pick<ConversationRequest, 'from'>,
  setting: NamedSetting,
  leftOut: LeftOut,
): void {
  leftOut.add(droppableNames[from][setting] ?? setting);
}
