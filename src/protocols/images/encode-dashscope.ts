import { imageObject } from '../../media/image-text.js';
import { isObject, type JsonObject, listOf, objectOf } from '../../wire/json.js';
import { type ImageCall, type ImageRequest, unsupportedByUpstream } from './request.js';
import { writeSize } from './settings.js';

export const dashscopePath = '/services/aigc/multimodal-generation/generation';

const openaiSize = /^\d+x\d+$/i;
const bodyMembers: ReadonlySet<string> = new Set(['model', 'input', 'parameters']);

/**
 * Returns whether a body is one that DashScope takes, so that it can get it as it is: a checked body with one message of the
 * user and one text, with its parameters and their size in DashScope's form, without other members, and without images in
 * base64 alone (https://www.alibabacloud.com/help/en/model-studio/qwen-image-api).
 */
export function isDashscopeBody(body: JsonObject): boolean {
  const { input, parameters = {} } = body;
  if (!isObject(input) || !isObject(parameters)) return false;
  const { size } = parameters;
  if (typeof size === 'string' && openaiSize.test(size)) return false;
  if (Object.values(parameters).includes(null)) return false;
  if (Object.keys(body).some((name) => !bodyMembers.has(name))) return false;
  const messages = listOf(input.messages).map(objectOf);
  const [message = {}] = messages;
  if (messages.length !== 1 || message.role !== 'user') return false;
  const items = listOf(message.content).map(objectOf);
  const areImagesReadable = items.every(
    ({ image }) => image === undefined || (typeof image === 'string' && /^(?:https?|data):/i.test(image)),
  );
  return areImagesReadable && items.filter(({ text }) => typeof text === 'string').length === 1;
}

/**
 * Writes a request for Alibaba Cloud's DashScope: one message of the user with the images and the text, and
 * `parameters`. Images whose bytes are known become data URLs; the others keep their URLs. Settings of OpenAI's API
 * that only affect how the image is made are left out.
 * @param model the model's name at the upstream
 * @throws {GatewayError} with status 400, naming the member, for a mask or another file, for a stream, and for required
 * properties of the image
 */
export function encodeDashscope(request: ImageRequest, model: string): ImageCall {
  refuse(request);
  const pieces: Buffer[] = [
    Buffer.from(`{"model":${JSON.stringify(model)},"input":{"messages":[{"role":"user","content":[`),
  ];
  for (const image of request.images) pieces.push(...imageObject('image', image), Buffer.from(','));
  const text = JSON.stringify({ text: request.prompt });
  pieces.push(Buffer.from(`${text}]}]},"parameters":${JSON.stringify(parametersOf(request))}}`));
  return { path: dashscopePath, contentType: 'application/json', body: pieces };
}

/** Lists the members of the client's body that such a request cannot express. */
export function unsupportedByDashscope({ extras }: ImageRequest): string[] {
  return Object.entries(extras).flatMap(([name, value]) => {
    // Other values of `background` are refused; for `output_format`, the upstream's default is requested.
    const isMet = name === 'background' || (name === 'output_format' && value === 'png');
    const isExpressed = isMet || (name === 'seed' && seedOf(value) !== null);
    return value === null || value === '' || isExpressed ? [] : [name];
  });
}

function refuse({ mask, otherFiles: [file], stream, extras }: ImageRequest): void {
  if (file !== undefined) throw unsupportedByUpstream(file.name, 'its upstream takes no such file');
  if (mask !== null) throw unsupportedByUpstream(mask.at, 'its upstream takes no mask');
  if (stream) throw unsupportedByUpstream('stream', 'its upstream gives images whole');
  if (extras.background === 'transparent')
    throw unsupportedByUpstream('background', 'its upstream makes no transparent images');
}

function parametersOf(request: ImageRequest): JsonObject {
  const { size } = request;
  const known = {
    negative_prompt: request.negativePrompt,
    prompt_extend: request.promptExtend,
    watermark: request.watermark,
    // Without a size the upstream chooses one, as for `auto`.
    size: size === null || size === 'auto' ? null : writeSize(size, '*'),
    n: request.count,
    seed: seedOf(request.extras.seed),
  };
  const given = Object.entries(known).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(given), ...request.parameters };
}

/** In a form, the seed is text. */
function seedOf(seed: unknown): number | null {
  const value = typeof seed === 'string' && /^\d{1,15}$/.test(seed) ? Number(seed) : seed;
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : null;
}
