import type { TokenLogprob } from '../../conversation/answer.js';
import { isObject, listOf, numberOrNull } from '../../wire/json.js';

type Choice = Omit<TokenLogprob, 'top_logprobs'>;

/** Reads a `logprobsResult`; null if it is empty. Incomplete entries are left out. */
export function decodeLogprobs(result: unknown): TokenLogprob[] | null {
  if (!isObject(result)) return null;
  const top = listOf(result.topCandidates);
  const tokens: TokenLogprob[] = [];
  listOf(result.chosenCandidates).forEach((candidate, index) => {
    const chosen = choiceOf(candidate);
    if (chosen === null) return;
    const alternatives = top[index];
    const choices = isObject(alternatives) ? listOf(alternatives.candidates).map(choiceOf) : [];
    tokens.push({ ...chosen, top_logprobs: choices.filter((choice) => choice !== null) });
  });
  return tokens.length > 0 ? tokens : null;
}

/** Writes a `logprobsResult`. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): string {
  const chosen = tokens.map(candidateOf).join();
  const top = tokens
    .map(({ top_logprobs }) => `{"candidates":[${top_logprobs.map(candidateOf).join()}]}`)
    .join();
  return `{"topCandidates":[${top}],"chosenCandidates":[${chosen}]}`;
}

function choiceOf(candidate: unknown): Choice | null {
  if (!isObject(candidate) || typeof candidate.token !== 'string') return null;
  const logprob = numberOrNull(candidate.logProbability);
  return logprob === null ? null : { token: candidate.token, logprob, bytes: null };
}

function candidateOf({ token, logprob }: Choice): string {
  return `{"token":${JSON.stringify(token)},"logProbability":${logprob}}`;
}
