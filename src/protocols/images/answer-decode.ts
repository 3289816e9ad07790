import { isHttpUrl } from '../../conversation/media-source.js';
import { answeredAs, GatewayError } from '../../errors.js';
import { base64OfDataUrl } from '../../media/image-text.js';
import {
  countOf,
  isObject,
  type JsonObject,
  listOf,
  numberOrNull,
  objectOf,
  parseObject,
  textOrNull,
} from '../../wire/json.js';
import { wholeOrNull } from '../../wire/reading.js';
import { tellsOfLimit, upstreamError, wordsOf } from '../error-formats/upstream-error.js';
import { vendorAccountErrorIn } from '../error-formats/vendor-account.js';
import type { AnswerImage, ImageAnswer, ImageUsage } from './answer.js';

/**
 * Reads an answer of OpenAI's images API.
 * @param body of an answer with a status below 300
 * @throws {GatewayError} what the answer says went wrong, or `upstream_error` for one without an image
 */
export function readOpenaiAnswer(body: Buffer): ImageAnswer {
  const answer = parseAnswer(body);
  const failure = upstreamError(answer.error);
  if (failure !== null) throw failure;
  return {
    created: wholeOrNull(answer.created),
    images: requireImages(listOf(answer.data).flatMap(imageOf)),
    usage: usageOf(answer.usage),
    size: filledOrNull(answer.size),
    outputFormat: filledOrNull(answer.output_format),
    quality: filledOrNull(answer.quality),
    background: filledOrNull(answer.background),
  };
}

/**
 * Reads an answer of DashScope's synchronous image generation.
 * @param body of an answer with a status below 300
 * @throws {GatewayError} what the answer says went wrong, or `upstream_error` for one without an image
 */
export function readDashscopeAnswer(body: Buffer): ImageAnswer {
  const answer = parseAnswer(body);
  const failure = failureOf(answer);
  if (failure !== null) throw failure;
  const output = objectOf(answer.output);
  const usage = objectOf(answer.usage);
  const width = countOf(usage.width);
  const height = countOf(usage.height);
  return {
    created: null,
    images: requireImages(listOf(output.choices).flatMap(imagesOfChoice)),
    usage: usageOf(usage),
    size: width > 0 && height > 0 ? `${width}x${height}` : null,
    outputFormat: null,
    quality: null,
    background: null,
  };
}

const refusals = /^(?:DataInspectionFailed|InvalidParameter|InvalidURL)/i;

/** DashScope's error in an answer of status 200, or null. */
function failureOf(answer: JsonObject): GatewayError | null {
  const code = filledOrNull(answer.code);
  if (code === null || isObject(answer.output)) return null;
  const ofVendorAccount = vendorAccountErrorIn(answer);
  if (ofVendorAccount !== null) return ofVendorAccount;
  const message = wordsOf(answer.message);
  if (tellsOfLimit(answer)) return answeredAs('rate_limit_exceeded', message);
  if (refusals.test(code)) return answeredAs('invalid_request', message, code);
  return new GatewayError('upstream_error', message);
}

function parseAnswer(body: Buffer): JsonObject {
  const answer = parseObject(body.toString('utf8'));
  if (answer === null)
    throw new GatewayError('upstream_error', 'The answer of the upstream is not a JSON object.');
  return answer;
}

function imagesOfChoice(choice: unknown): readonly AnswerImage[] {
  const message = objectOf(objectOf(choice).message);
  return listOf(message.content).flatMap((item) => (isObject(item) ? imageOf({ url: item.image }) : []));
}

/** The image of an element, or nothing for one that has none. */
function imageOf(element: unknown): readonly AnswerImage[] {
  if (!isObject(element)) return [];
  const given = filledOrNull(element.url);
  const inUrl = given === null ? null : base64OfDataUrl(given);
  const text = filledOrNull(element.b64_json);
  // Some upstreams put a data URL there.
  const base64 = text === null ? inUrl : (base64OfDataUrl(text) ?? text);
  const url = inUrl !== null ? given : given !== null && isHttpUrl(given) ? given : null;
  if (url === null && !base64) return [];
  return [{ url, base64: base64 || null, revisedPrompt: filledOrNull(element.revised_prompt) }];
}

function requireImages(images: readonly AnswerImage[]): readonly AnswerImage[] {
  if (images.length === 0) throw new GatewayError('upstream_error', "The upstream's answer has no image.");
  return images;
}

function usageOf(usage: unknown): ImageUsage | null {
  if (!isObject(usage)) return null;
  if (numberOrNull(usage.input_tokens) === null && numberOrNull(usage.output_tokens) === null) return null;
  const input = countOf(usage.input_tokens);
  const output = countOf(usage.output_tokens);
  const details = isObject(usage.input_tokens_details) ? usage.input_tokens_details : null;
  return {
    input,
    output,
    total: countOf(usage.total_tokens) || input + output,
    details:
      details === null ? null : { text: countOf(details.text_tokens), image: countOf(details.image_tokens) },
  };
}

function filledOrNull(value: unknown): string | null {
  return textOrNull(value) || null;
}
