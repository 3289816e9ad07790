import type { Reply } from './reply.js';
import type { ConversationRequest, MediaPart, TextPart, UserPart } from './request.js';
import type { Usage } from './usage.js';

const charactersOfToken = 4;
/** Whatever its size: how many tokens a medium is depends on the model. */
const mediumTokens = 1500;

/** A usage for an answer whose upstream reported none. */
export function estimatedUsage(input: number, output: number): Usage {
  return { input, output, cached: 0, cacheWritten: 0, reasoning: 0, estimated: true };
}

/**
 * The tokens that a request is taken for, from the length of its body: for every call, so it may cost next to nothing,
 * while `estimateTokens` is for callers who ask.
 * @param bytes of the body as it is sent
 */
export function inputEstimate({ turns }: ConversationRequest, bytes: number): number {
  let text = bytes;
  let tokens = 0;
  const count = (part: UserPart | TextPart | MediaPart): void => {
    if (part.kind === 'toolResult') for (const each of part.content) count(each);
    else if (part.kind !== 'text') {
      tokens += mediumTokens;
      if (part.source.kind === 'data') text -= part.source.data.length;
    }
  };
  for (const turn of turns) if (turn.role === 'user') for (const part of turn.parts) count(part);
  return tokens + tokensOf(Math.max(0, text));
}

/** The tokens that so many characters of an answer are taken for. */
export function tokensOf(characters: number): number {
  return Math.ceil(characters / charactersOfToken);
}

/** The tokens that a whole answer is taken for. */
export function replyTokens({ choices }: Reply): number {
  let characters = 0;
  for (const { parts } of choices)
    for (const part of parts) characters += part.kind === 'toolCall' ? part.input.length : part.text.length;
  return tokensOf(characters);
}
