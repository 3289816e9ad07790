import { createHash } from 'node:crypto';
import { type PromptWishes, promptWishes } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import type { AnswerFormat, Reply } from '../http/reply.js';
import { askedForStatus, RequestError } from '../http/request-error.js';
import { jsonReply, type RouteRequest, routes } from '../http/route.js';
import { imageUrl } from '../media/result.js';
import { requestIdOf, vendorBody, vendorFormat } from '../media/route.js';
import { isImageUrl } from '../openai/values.js';

const parameterError = 'InvalidParameter';
const maxCount = 6;
const maxGiven = 3;
const maxSeed = 2_147_483_647;
const leastEdge = 16;
const maxEdge = 4096;

const codes: Readonly<Record<number, string>> = {
  401: 'InvalidApiKey',
  403: 'AccessDenied',
  404: 'ModelNotFound',
  429: 'Throttling.RateQuota',
  503: 'ModelServingError',
};

/** The answer format of DashScope. */
export function dashScopeFormat(digest: string): AnswerFormat {
  const format = vendorFormat(
    (status) => codes[status] ?? (status < 500 ? parameterError : 'InternalError'),
    /^[A-Z]/,
    (code, message) => JSON.stringify({ code, message, request_id: requestIdOf(digest) }),
  );
  return { ...format, errorEvent: () => `data:${format.errorBody(askedForStatus(500))}\n\n` };
}

/** `POST /api/v1/services/aigc/multimodal-generation/generation` for images. */
export const dashScopeRoutes = routes({
  path: '/api/v1/services/aigc/multimodal-generation/generation',
  answerFormat: dashScopeFormat,
  answer: draw,
});

interface Asked {
  readonly wishes: PromptWishes;
  readonly images: readonly string[];
}

function draw(asked: RouteRequest): Reply {
  const body = vendorBody(asked, 'InvalidParameter.JsonParseError');
  if (body.model === undefined || body.model === '') {
    throw wrong('Required parameter "model" is missing.');
  }
  if (body.model !== 'sim-image') {
    const told = `Model not exist: ${JSON.stringify(body.model)}.`;
    throw new RequestError(404, told, null, 'ModelNotFound');
  }
  const { wishes, images } = readInput(body);
  const parameters = body.parameters ?? {};
  if (!isObject(parameters)) {
    throw wrong('"parameters" must be an object.');
  }
  const { width, height } = readSize(parameters.size ?? '1024*1024');
  const count = whole(parameters, 'n', { least: 1, most: maxCount }) ?? 1;
  const chosen = whole(parameters, 'seed', { least: 0, most: maxSeed });
  refuseWrongTypes(parameters);
  const seed = createHash('sha256')
    .update(JSON.stringify([wishes.rest, images, width, height, chosen]))
    .digest('hex')
    .slice(0, 12);
  const content = Array.from({ length: count }, (_, index) => ({
    image: imageUrl(asked.origin, { width, height, seed: `${seed}-${index}` }, wishes.content),
  }));
  const answer = {
    output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content } }] },
    usage: { image_count: count, width, height },
    request_id: requestIdOf(asked.digest),
  };
  return jsonReply(asked, answer, wishes.faults);
}

function readInput(body: JsonObject): Asked {
  const input: unknown = body.input;
  const messages: unknown = isObject(input) ? input.messages : null;
  if (!Array.isArray(messages) || messages.length !== 1) {
    throw wrong('"input.messages" must be an array with exactly one message.');
  }
  const message: unknown = messages[0];
  if (!isObject(message) || message.role !== 'user' || !Array.isArray(message.content)) {
    throw wrong('"input.messages[0]" must have the role "user" and an array as its content.');
  }
  const texts: string[] = [];
  const images: string[] = [];
  for (const [index, item] of message.content.entries()) {
    if (isObject(item) && typeof item.text === 'string' && item.image === undefined) {
      texts.push(item.text);
    } else if (isObject(item) && typeof item.image === 'string' && item.text === undefined) {
      images.push(readImage(item.image, index));
    } else {
      throw wrong(`"input.messages[0].content[${index}]" must have either "text" or "image".`);
    }
  }
  const [text = ''] = texts;
  if (texts.length !== 1 || text === '') {
    throw wrong('"input.messages[0].content" must have exactly one text.');
  }
  if (images.length > maxGiven) {
    throw wrong(`"input.messages[0].content" can have at most ${maxGiven} images.`);
  }
  return { wishes: promptWishes(text), images };
}

function readImage(image: string, index: number): string {
  if (!isImageUrl(image)) {
    throw wrong(`"input.messages[0].content[${index}].image" must be an address or a base64 data URL.`);
  }
  return image;
}

function readSize(size: unknown): { readonly width: number; readonly height: number } {
  const [width = 0, height = 0] = (/^(\d+)\*(\d+)$/.exec(String(size)) ?? []).slice(1).map(Number);
  if (Math.min(width, height) < leastEdge || Math.max(width, height) > maxEdge) {
    throw wrong('"parameters.size" must be "WIDTH*HEIGHT".');
  }
  return { width, height };
}

function whole(
  parameters: JsonObject,
  name: string,
  bounds: { readonly least: number; readonly most: number },
): number | null {
  const value = parameters[name] ?? null;
  if (value === null) {
    return null;
  }
  if (!Number.isInteger(value) || Number(value) < bounds.least || Number(value) > bounds.most) {
    throw wrong(`"parameters.${name}" must be an integer from ${bounds.least} to ${bounds.most}.`);
  }
  return Number(value);
}

function refuseWrongTypes(parameters: JsonObject): void {
  for (const [name, type] of [
    ['negative_prompt', 'string'],
    ['prompt_extend', 'boolean'],
    ['watermark', 'boolean'],
  ] as const) {
    if (parameters[name] !== undefined && typeof parameters[name] !== type) {
      throw wrong(`"parameters.${name}" must be a ${type}.`);
    }
  }
}

function wrong(message: string): RequestError {
  return new RequestError(400, message, null, parameterError);
}
