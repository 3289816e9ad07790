import { composeAnswer } from './answer.js';
import { chatManner } from './chat.js';
import { created } from './chat-parts.js';
import { type CompletionsRequest, readCompletionsRequest } from './completions-request.js';
import { type JsonRequest, jsonRoute } from './json-request.js';
import type { Answer } from './prompt.js';
import { bodyReply, type Manner, type Reply, type Route, type Step, streamReply } from './reply.js';
import { countTokens, words } from './tokens.js';

/** One completion of one prompt. */
interface Completion {
  readonly index: number;
  readonly prompt: string;
  readonly answer: Answer;
}

/** What every answer and chunk of one request shares. */
interface CompletionBase {
  readonly id: string;
  readonly object: 'text_completion';
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

/** How the older completions word errors and events. */
const manner: Manner = {
  ...chatManner,
  contentEvent: (text) =>
    eventText({ ...baseOf('cmpl-simulated', 'sim-text'), choices: [choiceOf(0, text, null, null)] }),
};

/** `POST /v1/completions` */
export const completionsRoute: Route = jsonRoute('/v1/completions', complete);

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
    return streamReply({ events: events(base, asked, completions), manner, directives });
  }
  const choices = completions.map((completion) => {
    const { index, answer } = completion;
    const pieces = piecesOf(asked, completion);
    return choiceOf(index, pieces.join(''), logprobs(asked, completion, pieces, 0), answer.finish);
  });
  const body = JSON.stringify({ ...base, choices, usage: usageOf(asked, completions) });
  return bodyReply({ status: 200, body, manner, directives });
}

/** The events of a stream: the completions take turns, then the usage if it was asked for, then `[DONE]`. */
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
  // Nothing stands before a prompt's first token that could make it likely.
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
