import { isHttpUrl } from '../../conversation/media-source.js';
import { addUsage, type Usage } from '../../conversation/usage.js';
import { answeredAs, GatewayError } from '../../errors.js';
import { base64OfDataUrl } from '../../media/image-text.js';
import {
  countOf,
  isObject,
  type JsonObject,
  listOf,
  objectOf,
  parseObject,
  textOrNull,
  wholeOrNull,
} from '../../wire/json.js';
import { numberNames, readNumbers } from '../../wire/json-numbers.js';
import { lastObjectStart } from '../../wire/json-skip.js';
import { errorMessageOf, isRateLimitError, upstreamError } from '../error-formats/upstream-error.js';
import { vendorAccountErrorIn } from '../error-formats/vendor-account.js';
import { createUsageReader, tokenNames } from '../openai-shared/usage.js';
import type { AnswerImage, ImageAnswer } from './answer.js';

/**
 * Reads an answer of OpenAI's images API.
 * @param body body of an answer with a status below 300
 * @throws {GatewayError} the error in the answer, or `upstream_error` for an answer without an image
 */
export function readOpenaiAnswer(body: Buffer): ImageAnswer {
  const answer = parseAnswer(body);
  const failure = upstreamError(answer.error);
  if (failure !== null) throw failure;
  const { data, ...members } = answer;
  return {
    created: wholeOrNull(answer.created),
    images: requireImages(listOf(data).flatMap(imageOf)),
    usage: imagesUsage(body),
    size: filledOrNull(answer.size),
    outputFormat: filledOrNull(answer.output_format),
    quality: filledOrNull(answer.quality),
    members,
  };
}

/**
 * Reads an answer of DashScope's synchronous image generation.
 * @param body body of an answer with a status below 300
 * @throws {GatewayError} the error in the answer, or `upstream_error` for an answer without an image
 */
export function readDashscopeAnswer(body: Buffer): ImageAnswer {
  const answer = parseAnswer(body);
  const failure = failureOf(answer);
  if (failure !== null) throw failure;
  const output = objectOf(answer.output);
  const usage = objectOf(answer.usage);
  const width = countOf(usage.width);
  const height = countOf(usage.height);
  const tokens = imagesUsage(body);
  const details = tokens === null ? null : usage.input_tokens_details;
  return {
    created: null,
    images: requireImages(listOf(output.choices).flatMap(imagesOfChoice)),
    usage: tokens,
    size: width > 0 && height > 0 ? `${width}x${height}` : null,
    outputFormat: null,
    quality: null,
    members: isObject(details) ? { usage: { input_tokens_details: details } } : {},
  };
}

const refusals = /^(?:DataInspectionFailed|InvalidParameter|InvalidURL)/i;

/** Returns DashScope's error in an answer with status 200, or null. */
function failureOf(answer: JsonObject): GatewayError | null {
  const code = filledOrNull(answer.code);
  if (code === null || isObject(answer.output)) return null;
  const ofVendorAccount = vendorAccountErrorIn(answer);
  if (ofVendorAccount !== null) return ofVendorAccount;
  const message = errorMessageOf(answer.message);
  if (isRateLimitError(answer)) return answeredAs('rate_limit_exceeded', message);
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

/** Returns the image of an element, or nothing if it has none. */
function imageOf(element: unknown): readonly AnswerImage[] {
  if (!isObject(element)) return [];
  const { url: address, b64_json: bytes, revised_prompt: revised, ...members } = element;
  const given = filledOrNull(address);
  const inUrl = given === null ? null : base64OfDataUrl(given);
  const text = filledOrNull(bytes);
  // Some upstreams put a data URL in these members.
  const base64 = text === null ? inUrl : (base64OfDataUrl(text) ?? text);
  const url = inUrl !== null ? given : given !== null && isHttpUrl(given) ? given : null;
  if (url === null && !base64) return [];
  return [{ url, base64: base64 || null, revisedPrompt: filledOrNull(revised), members }];
}

function requireImages(images: readonly AnswerImage[]): readonly AnswerImage[] {
  if (images.length === 0) throw new GatewayError('upstream_error', "The upstream's answer has no image.");
  return images;
}

const usageKey = Buffer.from('"usage"');
const madeKey = Buffer.from('"generated_images"');
const madeNames = numberNames(['generated_images']);

/**
 * Output tokens count as those of images unless the answer gives details
 * (https://platform.openai.com/docs/api-reference/images/object).
 */
const { lastUsage: usageOfTokens } = createUsageReader(tokenNames, 'image');

/** Usage of the model that wrote an image as SVG, besides that of making the image. */
const svgKey = Buffer.from('"svg_usage"');
const svgNames = numberNames([...tokenNames, 'reasoning_tokens']);

function svgUsage(bytes: Buffer): Usage | null {
  const found: number[] = [];
  const start = lastObjectStart(bytes, svgKey);
  if (start === -1 || readNumbers(bytes, start, svgNames, found) === -1) return null;
  const [input = 0, output = 0, reasoning = 0] = found.map((count) => Math.max(0, count));
  return { input, output, cached: 0, cacheWritten: 0, reasoning };
}

/**
 * Finds the last `usage` in the bytes of an answer or in the end of a stream. For Ark, it includes the number of images
 * that were made and billed (`generated_images`): fewer than requested, or more if a model may decide.
 */
export function imagesUsage(bytes: Buffer): Usage | null {
  const ofImages = usageOfTokens(bytes);
  const ofSvg = bytes.includes(svgKey) ? svgUsage(bytes) : null;
  const usage = ofSvg === null ? ofImages : addUsage(ofImages, ofSvg);
  if (usage === null || !bytes.includes(madeKey)) return usage;
  const found: number[] = [];
  const start = lastObjectStart(bytes, usageKey);
  if (start === -1 || readNumbers(bytes, start, madeNames, found) === -1) return usage;
  const { 0: calls = -1 } = found;
  return calls === -1 ? usage : { ...usage, calls };
}

function filledOrNull(value: unknown): string | null {
  return textOrNull(value) || null;
}
