import type { InputTokens } from './realtime-prompt.js';
import type { Turn } from './realtime-turn.js';

const msPerToken = 50;
const mostRequests = 1000;
const mostTokens = 1_000_000;

/** How a response stands: what of its object changes while it is made. */
export interface Standing {
  readonly status: string;
  readonly details: object | null;
  readonly output: readonly object[];
  readonly usage: object | null;
}

/** A response that has been taken up, and nothing more. */
export const inProgress: Standing = { status: 'in_progress', details: null, output: [], usage: null };

/** What a response that fails says of why. */
export const failure = {
  type: 'server_error',
  code: 'server_error',
  message: 'The simulator was asked for an error in the stream.',
};

/** The object of a response. */
export function responseObject(turn: Turn, { status, details, output, usage }: Standing): object {
  const { settings, dialect } = turn;
  const { voice, modalities, maxOutput, temperature, metadata } = settings;
  const format = { type: 'audio/pcm', rate: 24_000 };
  return {
    id: turn.id,
    object: 'realtime.response',
    status,
    status_details: details,
    output,
    conversation_id: turn.conversationId,
    [dialect.modalities]: modalities,
    max_output_tokens: maxOutput,
    ...(dialect.isBeta
      ? { voice, output_audio_format: 'pcm16', temperature }
      : { audio: { output: { format, voice } } }),
    usage,
    metadata,
  };
}

/** The `usage` of a response with all its details. */
export function turnUsage(input: InputTokens, output: { readonly text: number; readonly audioMs: number }) {
  const audio = Math.ceil(output.audioMs / msPerToken);
  const inputTokens = input.text + input.audio + input.image;
  const outputTokens = output.text + audio;
  return {
    total_tokens: inputTokens + outputTokens,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    input_token_details: {
      text_tokens: input.text,
      audio_tokens: input.audio,
      image_tokens: input.image,
      cached_tokens: 0,
      cached_tokens_details: { text_tokens: 0, audio_tokens: 0, image_tokens: 0 },
    },
    output_token_details: { text_tokens: output.text, audio_tokens: audio },
  };
}

/** What is left after so many responses, the last of which took so many tokens. */
export function rateLimits(responses: number, tokens: number): readonly object[] {
  const limit = (name: string, most: number, taken: number): object => ({
    name,
    limit: most,
    remaining: Math.max(0, most - taken),
    reset_seconds: Math.round((taken / most) * 60_000) / 1000,
  });
  return [limit('requests', mostRequests, responses), limit('tokens', mostTokens, tokens)];
}
