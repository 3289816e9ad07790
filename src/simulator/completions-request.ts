import { type Directive, textDirectives } from './directives.js';
import { isObject, type JsonObject } from './json.js';
import { integer, invalid, isTokens, type JsonRequest, modelOf, required } from './json-request.js';
import type { Prompt } from './prompt.js';
import { countTokens } from './tokens.js';

const usualMaxTokens = 16;

/** A request for completions as far as the simulator reads it. */
export interface CompletionsRequest {
  readonly model: string;
  /** One for each text to complete. */
  readonly prompts: readonly Prompt[];
  /** Completions of each. */
  readonly choices: number;
  /** A completion begins with its prompt. */
  readonly echo: boolean;
  /** Alternatives a token, or null for no log probabilities. */
  readonly logprobs: number | null;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly directives: readonly Directive[];
}

/**
 * Reads and checks the body of a completion.
 * @throws OpenAiError with what a caller did wrong.
 */
export function readCompletionsRequest({ body, digest, directives }: JsonRequest): CompletionsRequest {
  const model = modelOf(body, 'sim-text', false);
  const texts = readPrompts(required(body, 'prompt'));
  const all = [...directives, ...textDirectives(texts[0]?.text ?? '').directives];
  const maxTokens = integer(body, 'max_tokens', 0, Infinity) ?? usualMaxTokens;
  const stop = readStop(body.stop);
  const choices = integer(body, 'n', 1, 128) ?? 1;
  const stream = body.stream === true;
  checkBestOf(body, choices, stream);
  return {
    model,
    prompts: texts.map((one) => ({
      text: one.text,
      plainText: textDirectives(one.text).rest,
      directives: all,
      images: 0,
      toolResults: [],
      tools: [],
      toolChoice: { mode: 'none' },
      parallelCalls: false,
      format: { kind: 'text' },
      reasoning: null,
      maxTokens,
      stop,
      inputTokens: one.tokens,
      digest,
    })),
    choices,
    echo: body.echo === true,
    logprobs: integer(body, 'logprobs', 0, 5),
    stream,
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    directives: all,
  };
}

interface Text {
  readonly text: string;
  readonly tokens: number;
}

function readPrompts(prompt: unknown): readonly Text[] {
  const list: readonly unknown[] = Array.isArray(prompt) && !isTokens(prompt) ? prompt : [prompt];
  if (list.length === 0) {
    throw invalid('prompt', 'at least one text');
  }
  const first = typeof list[0];
  return list.map((one, index) => {
    if (typeof one === 'string' && first === 'string') {
      return { text: one, tokens: Math.max(1, countTokens(one)) };
    }
    if (isTokens(one) && first !== 'string') {
      return { text: `tokens ${one.join(' ')}`, tokens: one.length };
    }
    throw invalid(
      Array.isArray(prompt) ? `prompt[${index}]` : 'prompt',
      'a string, or a list of tokens, like all others',
    );
  });
}

function checkBestOf(body: JsonObject, choices: number, stream: boolean): void {
  const bestOf = integer(body, 'best_of', 0, 20) ?? 0;
  if (bestOf > 0 && bestOf < choices) {
    throw invalid('best_of', `a number that is not below 'n' (${choices})`);
  }
  if (bestOf > 1 && stream) {
    throw invalid('best_of', 'none in a stream');
  }
}

function readStop(stop: unknown): readonly string[] {
  const list: readonly unknown[] = stop === undefined || stop === null ? [] : [stop].flat();
  if (list.length > 4 || !list.every((one): one is string => typeof one === 'string')) {
    throw invalid('stop', 'a string or up to four strings');
  }
  return list.filter((one) => one !== '');
}
