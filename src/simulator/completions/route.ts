import { composeAnswer } from '../answer/answer.js';
import type { Answer, Prompt } from '../answer/prompt.js';
import { countTokens, words } from '../answer/tokens.js';
import { type Directive, textDirectives } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import { type AnswerFormat, type Reply, type Step, streamReply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { created, openaiFormat } from '../openai/format.js';
import { integer, invalid, isTokens, modelOf, readStop, required } from '../openai/values.js';

const usualMaxTokens = 16;

/** The members of a completions request that the simulator reads. */
interface CompletionsRequest {
  readonly model: string;
  /** One for each text to complete. */
  readonly prompts: readonly Prompt[];
  /** Completions per prompt. */
  readonly choices: number;
  /** Whether a completion begins with its prompt. */
  readonly echo: boolean;
  /** Alternatives per token, or null for no log probabilities. */
  readonly logprobs: number | null;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly directives: readonly Directive[];
}

/**
 * Reads and checks the body of a completion.
 * @throws RequestError with what a caller did wrong.
 */
function readCompletionsRequest({ body, digest, directives }: JsonRequest): CompletionsRequest {
  const model = modelOf(body, 'sim-text', false);
  const texts = readPrompts(required(body, 'prompt'));
  const all = [...directives, ...textDirectives(texts[0]?.text ?? '').directives];
  const maxTokens = integer(body, 'max_tokens', 0, Infinity) ?? usualMaxTokens;
  const stop = readStop(body);
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

/** One completion of one prompt. */
interface Completion {
  readonly index: number;
  readonly prompt: string;
  readonly answer: Answer;
}

/** The members common to all answers and chunks of a request. */
interface CompletionBase {
  readonly id: string;
  readonly object: 'text_completion';
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

/** The answer format of the older completions. */
const answerFormat: AnswerFormat = {
  ...openaiFormat,
  contentEvent: (text) =>
    eventText({ ...baseOf('cmpl-simulated', 'sim-text'), choices: [choiceOf(0, text, null, null)] }),
};

/** `POST /v1/completions` */
export const completionsRoutes = jsonRoutes({
  path: '/v1/completions',
  answerFormat: () => answerFormat,
  answer: complete,
});

function complete(request: JsonRequest): Reply {
  const asked = readCompletionsRequest(request);
  const completions = asked.prompts.flatMap((prompt, place) =>
    Array.from({ length: asked.choices }, (_, number) => ({
      index: place * asked.choices + number,
      prompt: prompt.text,
      answer: composeAnswer(prompt, number),
    })),
  );
  const base = baseOf(`cmpl-${request.digest.slice(0, 24)}`, asked.model);
  const { directives } = asked;
  if (asked.stream) {
    return streamReply({ events: events(base, asked, completions), answerFormat, directives });
  }
  const choices = completions.map((completion) => {
    const { index, answer } = completion;
    const pieces = piecesOf(asked, completion);
    return choiceOf(index, pieces.join(''), logprobs(asked, completion, pieces, 0), answer.finish);
  });
  const body = { ...base, choices, usage: usageOf(asked, completions) };
  return jsonReply({ answerFormat, directives }, body);
}

/** The events of a stream: interleaved completions, then the usage if requested, then `[DONE]`. */
function* events(
  base: CompletionBase,
  asked: CompletionsRequest,
  completions: readonly Completion[],
): Generator<Step> {
  const usage = asked.includeUsage ? { usage: null } : {};
  let open = completions.map((completion) => ({
    completion,
    pieces: piecesOf(asked, completion),
    before: 0,
  }));
  for (let turn = 0; open.length > 0; turn++) {
    for (const { completion, pieces, before } of open) {
      const piece = pieces[turn] ?? '';
      const detail = piece === '' ? null : logprobs(asked, completion, [piece], before);
      const finish = turn === pieces.length ? completion.answer.finish : null;
      const choice = choiceOf(completion.index, piece, detail, finish);
      yield event({ ...base, choices: [choice], ...usage }, countTokens(piece));
    }
    open = open
      .filter(({ pieces }) => turn < pieces.length)
      .map((one) => ({ ...one, before: one.before + (one.pieces[turn] ?? '').length }));
  }
  if (asked.includeUsage) {
    yield event({ ...base, choices: [], usage: usageOf(asked, completions) }, 0);
  }
  yield { kind: 'data', bytes: 'data: [DONE]\n\n', tokens: 0 };
}

function piecesOf(asked: CompletionsRequest, { prompt, answer }: Completion): readonly string[] {
  return asked.echo ? [...words(prompt), ...words(answer.text)] : words(answer.text);
}

/** Log probabilities in the older form: invented, falling from one alternative to the next. */
function logprobs(
  asked: CompletionsRequest,
  { prompt }: Completion,
  pieces: readonly string[],
  before: number,
): object | null {
  const { logprobs: alternatives, echo } = asked;
  if (alternatives === null) {
    return null;
  }
  let offset = before + (echo ? 0 : prompt.length);
  const offsets = pieces.map((piece) => {
    offset += piece.length;
    return offset - piece.length;
  });
  // The first token of a prompt has no probability, since nothing precedes it.
  const known = (at: number): boolean => !(echo && offsets[at] === 0);
  const top = (piece: string): object =>
    Object.fromEntries(
      Array.from({ length: alternatives }, (_, rank) => [
        rank === 0 ? piece : `${piece}~${rank}`,
        -0.25 - rank,
      ]),
    );
  return {
    tokens: pieces,
    token_logprobs: pieces.map((_, at) => (known(at) ? -0.25 : null)),
    top_logprobs: alternatives === 0 ? null : pieces.map((piece, at) => (known(at) ? top(piece) : null)),
    text_offset: offsets,
  };
}

function baseOf(id: string, model: string): CompletionBase {
  return { id, object: 'text_completion', created, model, system_fingerprint: 'fp_simulator' };
}

function choiceOf(index: number, text: string, detail: object | null, finish: string | null): object {
  return { text, index, logprobs: detail, finish_reason: finish };
}

function usageOf(asked: CompletionsRequest, completions: readonly Completion[]): object {
  const input = asked.prompts.reduce((sum, prompt) => sum + prompt.inputTokens, 0);
  const output = completions.reduce((sum, { answer }) => sum + answer.outputTokens, 0);
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

function eventText(body: object): string {
  return `data: ${JSON.stringify(body)}\n\n`;
}

function event(body: object, tokens: number): Step {
  return { kind: 'data', bytes: eventText(body), tokens };
}
