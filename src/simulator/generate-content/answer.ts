import type { Answer } from '../answer/prompt.js';
import { seal } from '../answer/seal.js';
import { countTokens, inTurns, words } from '../answer/tokens.js';
import { findDirective } from '../faults/directives.js';
import { isObject } from '../http/json.js';
import type { AnswerFormat } from '../http/reply.js';
import { type IllustratedAnswer, imagePart } from './image.js';
import type { GenerateContentRequest } from './request.js';

/** `error.status` by HTTP status. */
const names: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

/** The framing of the objects of a stream. */
export interface Framing {
  readonly contentType: string;
  frame(body: object): string;
  /** Text after the last object. */
  readonly end: string;
}

/** One server-sent event per object. */
export const eventFraming: Framing = {
  contentType: 'text/event-stream; charset=utf-8',
  frame: (body) => `data: ${JSON.stringify(body)}\n\n`,
  end: '',
};

/** One JSON array of all objects: the form of a stream not requested as events. */
export function arrayFraming(): Framing {
  let opened = false;
  return {
    contentType: 'application/json',
    frame(body) {
      const lead = opened ? ',\n' : '[';
      opened = true;
      return lead + JSON.stringify(body);
    },
    end: ']',
  };
}

/** An object that adds to the answer of one candidate. */
function contentChunk(parts: readonly object[], index: number): object {
  return { content: { role: 'model', parts }, index };
}

/**
 * The answer format of generateContent.
 * @param framing framing of the requested stream, or null without one
 */
export function generateContentFormat(framing: Framing | null): AnswerFormat {
  const error = (status: number, message: string): object => ({
    error: {
      code: status,
      message,
      status: names[status] ?? (status < 500 ? 'FAILED_PRECONDITION' : 'INTERNAL'),
    },
  });
  const inArray = framing !== null && framing !== eventFraming;
  return {
    errorBody: ({ status, message }) => {
      const body = JSON.stringify(error(status, message));
      return inArray ? `[${body}]` : body;
    },
    errorEvent: () => {
      const { frame, end } = framing ?? eventFraming;
      return frame(error(500, 'The simulator was asked for an error in the stream.')) + end;
    },
    contentEvent: (text) => {
      const chunk = {
        candidates: [contentChunk([{ text }], 0)],
        modelVersion: 'sim-text',
        responseId: 'simulated',
      };
      return inArray ? `,\n${JSON.stringify(chunk)}` : eventFraming.frame(chunk);
    },
    eventsBeforeContent: 1,
    foreign: 'messages',
  };
}

/** An object of a stream, or the only one, with the tokens that count toward the token rate. */
interface Chunk {
  readonly body: object;
  readonly tokens: number;
}

interface Piece {
  readonly part: object;
  /** The part of the answer's text in it. */
  readonly text: string;
}

/** The whole answer as one object. */
export function wholeAnswer(asked: GenerateContentRequest, answers: readonly IllustratedAnswer[]): object {
  if (blocksPrompt(asked)) {
    return blocked(asked);
  }
  const candidates = answers.map((answer, index) => ({
    ...candidate(
      pieces(asked, answer, false).map(({ part }) => part),
      answer,
      index,
    ),
    ...ending(answer),
    ...logprobs(asked, words(spoken(asked, answer))),
  }));
  return { candidates, usageMetadata: usage(asked, answers), ...origin(asked) };
}

/** The answer as the objects of a stream, one part each; several candidates are interleaved. */
export function* answerChunks(
  asked: GenerateContentRequest,
  answers: readonly IllustratedAnswer[],
): Generator<Chunk> {
  if (blocksPrompt(asked)) {
    yield { body: blocked(asked), tokens: 0 };
    return;
  }
  const running = usage(asked, []);
  const candidates = inTurns(answers.map((answer, index) => candidateChunks(asked, answer, index)));
  let held: Chunk | null = null;
  for (const { body, tokens } of candidates) {
    if (held !== null) {
      yield { ...held, body: { candidates: [held.body], usageMetadata: running, ...origin(asked) } };
    }
    held = { body, tokens };
  }
  const last = { candidates: [held?.body], usageMetadata: usage(asked, answers), ...origin(asked) };
  yield { body: last, tokens: held?.tokens ?? 0 };
}

/** The objects of a candidate; the last one has the finish reason. */
function* candidateChunks(
  asked: GenerateContentRequest,
  answer: IllustratedAnswer,
  index: number,
): Generator<Chunk> {
  const all = pieces(asked, answer, true);
  for (const [place, { part, text }] of all.entries()) {
    const detail =
      'functionCall' in part || 'thought' in part ? {} : logprobs(asked, text === '' ? [] : [text]);
    const end = place === all.length - 1 ? ending(answer) : {};
    yield { body: { ...candidate([part], answer, index), ...detail, ...end }, tokens: countTokens(text) };
  }
  if (all.length === 0) {
    yield { body: { ...candidate([], answer, index), ...ending(answer) }, tokens: 0 };
  }
}

/**
 * The parts of an answer. The thought signature is on the first call, else on the last text, which is empty in a stream.
 */
function pieces(
  asked: GenerateContentRequest,
  answer: IllustratedAnswer,
  streamed: boolean,
): readonly Piece[] {
  const cut = (text: string): readonly string[] => (streamed ? words(text) : text === '' ? [] : [text]);
  const thoughtSignature = seal('thought', answer.reasoning);
  const found: Piece[] = [];
  for (const text of asked.generation.showsThoughts ? cut(answer.reasoning) : []) {
    found.push({ part: { text, thought: true }, text });
  }
  const texts = cut(spoken(asked, answer));
  const thinks = asked.prompt.reasoning !== null && texts.length > 0;
  for (const text of texts) {
    found.push({ part: thinks && !streamed ? { text, thoughtSignature } : { text }, text });
  }
  if (thinks && streamed) {
    found.push({ part: { text: '', thoughtSignature }, text: '' });
  }
  if (answer.image !== null) {
    found.push({ part: imagePart(answer.image, asked.prompt.digest), text: '' });
  }
  for (const [index, call] of answer.calls.entries()) {
    const args = inputOf(call.input);
    // A call that was cut is left out, since the protocol has no form for it.
    if (args !== null) {
      const functionCall = { name: call.name, ...args };
      const part = index === 0 ? { functionCall, thoughtSignature } : { functionCall };
      found.push({ part, text: call.input });
    }
  }
  return found;
}

function spoken(asked: GenerateContentRequest, answer: Answer): string {
  if (!asked.generation.asEnum) {
    return answer.text;
  }
  try {
    const value: unknown = JSON.parse(answer.text);
    return typeof value === 'string' ? value : answer.text;
  } catch {
    return answer.text;
  }
}

function inputOf(json: string): { readonly args?: object } | null {
  if (json === '') {
    return {};
  }
  try {
    const args: unknown = JSON.parse(json);
    return isObject(args) ? { args } : null;
  } catch {
    return null;
  }
}

function candidate(parts: readonly object[], answer: Answer, index: number): object {
  if (parts.length > 0) {
    return contentChunk(parts, index);
  }
  return answer.refusal === '' ? { content: { role: 'model' }, index } : { index };
}

const ratings = [{ category: 'HARM_CATEGORY_DANGEROUS_CONTENT', probability: 'HIGH', blocked: true }];

function ending(answer: Answer): object {
  if (answer.refusal !== '') {
    return { finishReason: answer.finishWord ?? 'SAFETY', safetyRatings: ratings };
  }
  return { finishReason: answer.finishWord ?? (answer.finish === 'length' ? 'MAX_TOKENS' : 'STOP') };
}

function blocksPrompt(asked: GenerateContentRequest): boolean {
  return findDirective(asked.prompt.directives, 'refuse')?.value === 'prompt';
}

function blocked(asked: GenerateContentRequest): object {
  return {
    promptFeedback: { blockReason: 'PROHIBITED_CONTENT', safetyRatings: ratings },
    usageMetadata: usage(asked, []),
    ...origin(asked),
  };
}

function origin(asked: GenerateContentRequest): object {
  return { modelVersion: asked.model, responseId: asked.prompt.digest.slice(0, 24) };
}

/** The `usageMetadata` with these answers; without any, that of the start. */
function usage(asked: GenerateContentRequest, answers: readonly IllustratedAnswer[]): object {
  const prompt = asked.prompt.inputTokens;
  const output = answers.reduce((sum, answer) => sum + answer.outputTokens, 0);
  const thoughts = answers.reduce((sum, answer) => sum + answer.reasoningTokens, 0);
  return {
    promptTokenCount: prompt,
    ...(answers.length === 0 ? {} : { candidatesTokenCount: output - thoughts }),
    totalTokenCount: prompt + output,
    promptTokensDetails: tokenDetails(asked),
    ...answerDetails(answers),
    ...(thoughts === 0 ? {} : { thoughtsTokenCount: thoughts }),
  };
}

/** The tokens of answers by modality, if they are not text only. */
function answerDetails(answers: readonly IllustratedAnswer[]): object {
  const images = answers.reduce((sum, { image }) => sum + (image?.tokens ?? 0), 0);
  if (images === 0) {
    return {};
  }
  const all = answers.reduce((sum, answer) => sum + answer.outputTokens - answer.reasoningTokens, 0);
  const text = { modality: 'TEXT', tokenCount: all - images };
  const image = { modality: 'IMAGE', tokenCount: images };
  return { candidatesTokensDetails: all === images ? [image] : [text, image] };
}

/** The tokens of a prompt by modality. */
export function tokenDetails({ prompt, mediaTokens }: GenerateContentRequest): readonly object[] {
  const text = { modality: 'TEXT', tokenCount: prompt.inputTokens - mediaTokens };
  return mediaTokens === 0 ? [text] : [text, { modality: 'IMAGE', tokenCount: mediaTokens }];
}

/** Log probabilities of pieces of text: invented, falling from one alternative to the next. */
function logprobs({ generation }: GenerateContentRequest, tokens: readonly string[]): object {
  const alternatives = generation.logprobs;
  if (alternatives === null || tokens.length === 0) {
    return {};
  }
  const one = (token: string, rank: number): object => ({
    token: rank === 0 ? token : `${token}~${rank}`,
    tokenId: rank,
    logProbability: -0.25 - rank,
  });
  return {
    avgLogprobs: -0.25,
    logprobsResult: {
      chosenCandidates: tokens.map((token) => one(token, 0)),
      topCandidates: tokens.map((token) => ({
        candidates: Array.from({ length: alternatives }, (_, rank) => one(token, rank)),
      })),
    },
  };
}
