import type { Answer } from '../answer/prompt.js';
import type { ChatRequest } from './request.js';

/** The `finish_reason` of a choice. */
export function finishReason(asked: ChatRequest, answer: Answer): string {
  if (answer.finishWord !== null || answer.finish !== 'tools') {
    return answer.finishWord ?? answer.finish;
  }
  return asked.legacyFunctions ? 'function_call' : 'tool_calls';
}

/** The `usage` of an answer with all its choices. */
export function chatUsage(asked: ChatRequest, answers: readonly Answer[]): object {
  const sum = (count: (answer: Answer) => number): number =>
    answers.reduce((total, answer) => total + count(answer), 0);
  const prompt = asked.prompt.inputTokens;
  const output = sum((answer) => answer.outputTokens);
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: sum((answer) => answer.reasoningTokens),
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

/** Log probabilities of pieces of text: invented, falling from one alternative to the next. */
export function logprobs(tokens: readonly string[], alternatives: number): object[] {
  const one = (token: string, logprob: number): object => ({
    token,
    logprob,
    bytes: [...Buffer.from(token)],
  });
  return tokens.map((token) => ({
    ...one(token, -0.25),
    top_logprobs: Array.from({ length: alternatives }, (_, rank) =>
      one(rank === 0 ? token : `${token}~${rank}`, -0.25 - rank),
    ),
  }));
}
