import { noParts, type TokenParts } from '../conversation/usage.js';
import { countOf, isObject, type JsonObject, listOf } from '../wire/json.js';

/** A `usageMetadata` without any of these reports no tokens with a price of their own. */
export const modalityMarks: readonly Buffer[] = ['"AUDIO"', '"IMAGE"', '"VIDEO"'].map((mark) =>
  Buffer.from(mark),
);

/** Reads the tokens of a `usageMetadata` by modality (https://ai.google.dev/api/generate-content#UsageMetadata). */
export function partsByModality(usage: JsonObject): TokenParts {
  const { promptTokensDetails, toolUsePromptTokensDetails, cacheTokensDetails, candidatesTokensDetails } =
    usage;
  const ofInput = [...listOf(promptTokensDetails), ...listOf(toolUsePromptTokensDetails)];
  const cachedVideo = tokensOf(listOf(cacheTokensDetails), 'VIDEO');
  return {
    ...noParts,
    audioInput: tokensOf(ofInput, 'AUDIO'),
    imageInput: tokensOf(ofInput, 'IMAGE'),
    // Cached tokens have the price of the cache.
    videoInput: Math.max(0, tokensOf(ofInput, 'VIDEO') - cachedVideo),
    cachedAudio: tokensOf(listOf(cacheTokensDetails), 'AUDIO'),
    cachedImage: tokensOf(listOf(cacheTokensDetails), 'IMAGE'),
    audioOutput: tokensOf(listOf(candidatesTokensDetails), 'AUDIO'),
    imageOutput: tokensOf(listOf(candidatesTokensDetails), 'IMAGE'),
  };
}

function tokensOf(details: readonly unknown[], modality: string): number {
  return details.reduce<number>(
    (sum, each) => sum + (isObject(each) && each.modality === modality ? countOf(each.tokenCount) : 0),
    0,
  );
}
