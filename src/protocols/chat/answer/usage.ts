import type { Usage } from '../../../conversation/usage.js';

export { decodeUsage, lastUsage } from '../../openai-shared/choice-stream.js';

/** Writes the JSON text of a `usage` object. Omits details without information. */
export function encodeUsage({ input, output, cached, cacheWritten, reasoning }: Usage): string {
  let text = `{"prompt_tokens":${input},"completion_tokens":${output},"total_tokens":${input + output}`;
  if (cached > 0 || cacheWritten > 0) {
    const written = cacheWritten > 0 ? `,"cache_write_tokens":${cacheWritten}` : '';
    text += `,"prompt_tokens_details":{"cached_tokens":${cached}${written}}`;
  }
  if (reasoning > 0) text += `,"completion_tokens_details":{"reasoning_tokens":${reasoning}}`;
  return `${text}}`;
}
