import { GatewayError } from '../../errors.js';
import type { ImageSource } from '../../media/image.js';
import { readImageText } from '../../media/image-text.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { missingValue, wrongValue } from '../../wire/reading.js';
import {
  type ImageOperation,
  type ImageRequest,
  imageMembers,
  imageOnGeneration,
  type NamedFile,
} from './request.js';
import { editsRequest, formOf, generationsRequest, mostImages } from './schema.js';
import { decodeSettings } from './settings.js';

const longestPrompt = 32_000;

/**
 * Reads a JSON body of either form, for an upstream that does not take it as it came.
 * @param body with its long strings
 * @throws {GatewayError} of status 400, naming the place in the body
 */
export function decodeImageBody(operation: ImageOperation, body: JsonObject): ImageRequest {
  const schema = operation === 'generate' ? generationsRequest : editsRequest;
  if (!schema.check(body)) throw schema.explain(body);
  const form = formOf(body);
  if (form instanceof GatewayError) throw form;
  return form === 'input' ? decodeInputForm(operation, body) : decodePromptForm(operation, body);
}

function decodeInputForm(operation: ImageOperation, body: JsonObject): ImageRequest {
  const stray = imageMembers.find((key) => (body[key] ?? null) !== null);
  if (stray !== undefined)
    throw notWithInput(stray, "Put images into 'input.messages', or send the text as 'prompt'.");
  const { prompt, images } = decodeInput(operation, body.input);
  const settings = decodeSettings(body, isObject(body.parameters) ? body.parameters : {});
  if (settings.stream) throw notWithInput('stream', "Leave it out, or send the text as 'prompt'.");
  return {
    ...settings,
    responseFormat: settings.responseFormat ?? 'url',
    operation,
    form: 'input',
    model: requireModel(body),
    prompt: requirePrompt(prompt, 'input.messages'),
    images: requireImages(operation, images, 'input.messages'),
    mask: null,
    otherFiles: [],
  };
}

function decodePromptForm(operation: ImageOperation, body: JsonObject): ImageRequest {
  if (operation === 'generate') {
    const given = imageMembers.find((key) => (body[key] ?? null) !== null);
    if (given !== undefined) throw imageOnGeneration(given);
  }
  return promptRequest(operation, {
    fields: body,
    images: [...referencesIn(body, 'images'), ...referencesIn(body, 'image')],
    imagesAt: 'images',
    mask: (body.mask ?? null) === null ? null : decodeReference(body.mask, 'mask'),
    otherFiles: [],
  });
}

/** What a body with a prompt, JSON or form, has been read to. */
interface PromptParts {
  /** Everything but the images. */
  readonly fields: JsonObject;
  readonly images: readonly ImageSource[];
  /** What the member with the images is called. */
  readonly imagesAt: string;
  readonly mask: ImageSource | null;
  readonly otherFiles: readonly NamedFile[];
}

/**
 * Makes the request of a body with a prompt.
 * @throws {GatewayError} of status 400, naming the member
 */
export function promptRequest(
  operation: ImageOperation,
  { fields, images, imagesAt, mask, otherFiles }: PromptParts,
): ImageRequest {
  if (typeof fields.prompt !== 'string') throw wrongValue('prompt', 'a string');
  return {
    ...decodeSettings(fields, null),
    operation,
    form: 'prompt',
    model: requireModel(fields),
    prompt: requirePrompt(fields.prompt, 'prompt'),
    images: requireImages(operation, images, imagesAt),
    mask,
    otherFiles,
  };
}

function notWithInput(at: string, advice: string): GatewayError {
  return new GatewayError('unsupported_parameter', `'${at}' is not supported beside 'input'. ${advice}`, {
    param: at,
  });
}

/** The images of a member that holds one or a list. */
function referencesIn(body: JsonObject, member: string): readonly ImageSource[] {
  const given = body[member] ?? null;
  if (Array.isArray(given))
    return given.map((reference, index) => decodeReference(reference, `${member}[${index}]`));
  return given === null ? [] : [decodeReference(given, member)];
}

function decodeReference(reference: unknown, at: string): ImageSource {
  if (typeof reference === 'string') return readImageText(reference, at);
  if (!isObject(reference)) throw wrongValue(at, "an object with 'image_url'");
  const { image_url: url = null, file_id: file = null } = reference;
  if (file !== null) {
    throw new GatewayError(
      'unsupported_parameter',
      `'${at}.file_id' is not supported: files are not kept here. Send the image in '${at}.image_url', as a URL or a data URL.`,
      { param: `${at}.file_id` },
    );
  }
  if (url === null) {
    throw missingValue(`${at}.image_url`, 'the URL of an image or a data URL');
  }
  if (typeof url !== 'string') throw wrongValue(`${at}.image_url`, 'a string');
  return readImageText(url, `${at}.image_url`);
}

function requireModel({ model }: JsonObject): string {
  if (typeof model === 'string' && model !== '') return model;
  throw missingValue('model', 'a non-empty string');
}

function requirePrompt(prompt: string, at: string): string {
  if (prompt === '') {
    if (at === 'prompt') throw missingValue(at, 'a non-empty string');
    const message = `'${at}' has no text: expected an item with a 'text' that says what the image is to be.`;
    throw new GatewayError('missing_parameter', message, { param: at });
  }
  // A pair of surrogates is one character.
  if (prompt.length > longestPrompt && [...prompt].length > longestPrompt)
    throw wrongValue(at, `a text of at most ${longestPrompt} characters`);
  return prompt;
}

function requireImages(
  operation: ImageOperation,
  images: readonly ImageSource[],
  at: string,
): readonly ImageSource[] {
  if (operation === 'generate') return images;
  if (images.length === 0) {
    throw new GatewayError(
      'missing_parameter',
      `Missing an image to edit: expected at least one in '${at}'. Without one, use POST /v1/images/generations.`,
      { param: at },
    );
  }
  if (images.length > mostImages) throw wrongValue(at, `at most ${mostImages} images`);
  return images;
}

/** What the messages of an `input` say. */
interface DecodedInput {
  /** Their texts, one a line. */
  readonly prompt: string;
  /** In their order. */
  readonly images: readonly ImageSource[];
}

/**
 * Reads `input`: texts and images of all its messages, which are the user's.
 * @throws {GatewayError} of status 400, naming the place, for another role, and for content that is neither
 */
function decodeInput(operation: ImageOperation, input: unknown): DecodedInput {
  const messages = isObject(input) ? input.messages : null;
  if (!Array.isArray(messages) || messages.length === 0)
    throw wrongValue('input.messages', 'an array of at least 1 item');
  const texts: string[] = [];
  const images: ImageSource[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `input.messages[${index}]`;
    for (const [place, item] of contentOf(message, at).entries()) {
      const { text, image } = decodeItem(item, `${at}.content[${place}]`);
      if (text !== '') texts.push(text);
      if (image === null) continue;
      const imageAt = `${at}.content[${place}].image`;
      if (operation === 'generate') throw imageOnGeneration(imageAt);
      images.push(readImageText(image, imageAt));
    }
  }
  return { prompt: texts.join('\n'), images };
}

function contentOf(message: unknown, at: string): readonly unknown[] {
  if (!isObject(message)) throw wrongValue(at, 'an object');
  const { content = null } = message;
  if (content === null) return [];
  if (!Array.isArray(content))
    throw wrongValue(`${at}.content`, "an array of objects with 'text' or 'image'");
  return content;
}

function decodeItem(item: unknown, at: string): { readonly text: string; readonly image: string | null } {
  const { text = null, image = null }: JsonObject = isObject(item) ? item : {};
  if (text === null && image === null) throw wrongValue(at, "an object with 'text' or 'image'");
  if (text !== null && typeof text !== 'string') throw wrongValue(`${at}.text`, 'a string');
  if (image !== null && typeof image !== 'string') throw wrongValue(`${at}.image`, 'a string');
  return { text: text ?? '', image };
}
