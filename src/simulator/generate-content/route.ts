import { type Reply, type Route, type Step, streamReply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import {
  answerChunks,
  arrayFraming,
  eventFraming,
  type Framing,
  generateContentFormat,
  tokenDetails,
  wholeAnswer,
} from './answer.js';
import { composeIllustrated, type IllustratedAnswer } from './image.js';
import { type GenerateContentRequest, readCountTokens, readGenerateContent } from './request.js';

/** The routes of generateContent. The model is part of the path, and may contain slashes. */
export const generateContentRoutes: readonly Route[] = [
  ...modelRoutes('generateContent', generate),
  ...modelRoutes('streamGenerateContent', stream, framingOf),
  ...modelRoutes('countTokens', count),
];

/**
 * The route of a method of models.
 * @param framing framing of its stream, if it has one
 */
export function modelRoutes(
  method: string,
  answer: (request: JsonRequest) => Reply,
  framing: (query: URLSearchParams) => Framing | null = () => null,
): Route[] {
  return jsonRoutes({
    path: new RegExp(`^/v1(?:beta|alpha)?/models/(.+):${method}$`),
    answerFormat: (_digest, query) => generateContentFormat(framing(query)),
    headers: () => ({}),
    answer,
  });
}

function framingOf(query: URLSearchParams): Framing {
  return query.get('alt') === 'sse' ? eventFraming : arrayFraming();
}

/** The model in a request's path. */
export function modelOf({ path }: JsonRequest): string {
  const name = path.slice(path.indexOf('/models/') + '/models/'.length, path.lastIndexOf(':'));
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function compose({ prompt, generation }: GenerateContentRequest): readonly IllustratedAnswer[] {
  return Array.from({ length: generation.candidates }, (_, index) =>
    composeIllustrated(prompt, generation.image, index),
  );
}

function generate(request: JsonRequest): Reply {
  const asked = readGenerateContent(request, modelOf(request));
  const { directives } = asked.prompt;
  return jsonReply({ answerFormat: request.answerFormat, directives }, wholeAnswer(asked, compose(asked)));
}

function stream(request: JsonRequest): Reply {
  const framing = framingOf(request.query);
  const asked = readGenerateContent(request, modelOf(request));
  const answers = compose(asked);
  function* events(): Generator<Step> {
    for (const { body, tokens } of answerChunks(asked, answers)) {
      yield { kind: 'data', bytes: framing.frame(body), tokens };
    }
    if (framing.end !== '') {
      yield { kind: 'data', bytes: framing.end, tokens: 0 };
    }
  }
  return streamReply({
    events: events(),
    answerFormat: generateContentFormat(framing),
    headers: { 'content-type': framing.contentType },
    directives: asked.prompt.directives,
  });
}

function count(request: JsonRequest): Reply {
  const asked = readCountTokens(request, modelOf(request));
  const { inputTokens, directives } = asked.prompt;
  return jsonReply(
    { answerFormat: request.answerFormat, directives },
    { totalTokens: inputTokens, promptTokensDetails: tokenDetails(asked) },
  );
}
