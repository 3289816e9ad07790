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
type DroppableSetting =
  | Exclude<Setting, 'serving'>
  | 'temperature'
  | 'topP'
  | 'topK'
  | 'stop'
  | 'signature'
  | 'reasoning';
/** Settings that some protocol cannot say and that may not be dropped. */
export type RefusableSetting = 'candidates' | 'logprobs' | 'logitBias' | 'toolChoice' | 'prefill';

type Names = Readonly<Record<RefusableSetting, string> & Partial<Record<DroppableSetting, string>>>;

const usual = {
  candidates: 'n',
  logprobs: 'logprobs',
  logitBias: 'logit_bias',
  toolChoice: 'tool_choice',
  prefill: 'messages',
  temperature: 'temperature',
  topP: 'top_p',
  strict: 'strict',
} as const;

/** What each protocol calls settings, as a caller writes them; of one that it lacks it never asks to leave it out. */
const names: Readonly<Record<TextProtocolName, Names>> = {
  chat: {
    ...usual,
    topK: 'top_k',
    seed: 'seed',
    presencePenalty: 'presence_penalty',
    frequencyPenalty: 'frequency_penalty',
    verbosity: 'verbosity',
    user: 'user',
    parallelCalls: 'parallel_tool_calls',
    detail: 'detail',
    stop: 'stop',
    signature: 'reasoning_content',
    reasoning: 'reasoning_effort',
  },
  responses: {
    ...usual,
    logprobs: 'include',
    prefill: 'input',
    verbosity: 'text.verbosity',
    user: 'user',
    parallelCalls: 'parallel_tool_calls',
    detail: 'detail',
    signature: 'encrypted_content',
    reasoning: 'reasoning.effort',
  },
  messages: {
    ...usual,
    topK: 'top_k',
    user: 'metadata.user_id',
    parallelCalls: 'tool_choice.disable_parallel_tool_use',
    stop: 'stop_sequences',
    signature: 'signature',
    reasoning: 'thinking',
  },
  generateContent: {
    candidates: 'generationConfig.candidateCount',
    logprobs: 'generationConfig.responseLogprobs',
    logitBias: 'logitBias',
    toolChoice: 'toolConfig.functionCallingConfig',
    prefill: 'contents',
    signature: 'thoughtSignature',
    reasoning: 'generationConfig.thinkingConfig',
    stop: 'generationConfig.stopSequences',
    temperature: 'generationConfig.temperature',
    topP: 'generationConfig.topP',
    topK: 'generationConfig.topK',
    seed: 'generationConfig.seed',
    presencePenalty: 'generationConfig.presencePenalty',
    frequencyPenalty: 'generationConfig.frequencyPenalty',
  },
};

/** What a client of the protocol calls the setting. */
export function settingName(from: TextProtocolName, setting: RefusableSetting): string {
  return names[from][setting];
}

/** Tells the name of a setting that is left out as the client wrote it. */
export function leaveOut(
  { from }: Pick<ConversationRequest, 'from'>,
  setting: DroppableSetting,
  leftOut: LeftOut,
): void {
  leftOut.add(names[from][setting] ?? setting);
}
