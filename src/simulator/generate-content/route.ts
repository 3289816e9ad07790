import { type ProtocolRequest, protocolRoute } from '../http/protocol-route.js';
import { bodyReply, type Reply, type Route, type Step, streamReply } from '../http/reply.js';
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

/** The routes of generateContent; the model is part of the path, and may have slashes itself. */
export const generateContentRoutes: readonly Route[] = [
  protocolRoute({
    path: pathOf('generateContent'),
    answerFormat: () => generateContentFormat(null),
    answer: generate,
  }),
  {
    method: 'POST',
    path: pathOf('streamGenerateContent'),
    handle(request) {
      const asEvents = new URLSearchParams(request.target.split('?')[1]).get('alt') === 'sse';
      const framing = asEvents ? eventFraming : arrayFraming();
      const answerFormat = generateContentFormat(framing);
      const path = pathOf('streamGenerateContent');
      const answer = (asked: ProtocolRequest): Reply => stream(asked, framing);
      return protocolRoute({ path, answerFormat: () => answerFormat, answer }).handle(request);
    },
  },
  protocolRoute({
    path: pathOf('countTokens'),
    answerFormat: () => generateContentFormat(null),
    answer: count,
  }),
];

function pathOf(method: string): RegExp {
  return new RegExp(`^/v1(?:beta|alpha)?/models/(.+):${method}$`);
}

/** The model in a request's path. */
function modelOf({ target }: ProtocolRequest): string {
  const path = target.split('?', 1)[0] ?? '';
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

function generate(request: ProtocolRequest): Reply {
  const asked = readGenerateContent(request, modelOf(request));
  const answers = compose(asked);
  const { directives } = asked.prompt;
  const body = JSON.stringify(wholeAnswer(asked, answers));
  return bodyReply({ status: 200, body, answerFormat: request.answerFormat, directives });
}

function stream(request: ProtocolRequest, framing: Framing): Reply {
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
    answerFormat: request.answerFormat,
    headers: { 'content-type': framing.contentType },
    directives: asked.prompt.directives,
  });
}

function count(request: ProtocolRequest): Reply {
  const asked = readCountTokens(request, modelOf(request));
  const { inputTokens, directives } = asked.prompt;
  const body = JSON.stringify({ totalTokens: inputTokens, promptTokensDetails: tokenDetails(asked) });
  return bodyReply({ status: 200, body, answerFormat: request.answerFormat, directives });
}
