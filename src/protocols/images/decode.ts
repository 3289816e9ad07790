import { GatewayError } from '../../errors.js';
import type { ImageSource } from '../../media/image.js';
import { readImageText } from '../../media/image-text.js';
import {
  isObject,
  type JsonObject,
  listOf,
  memberError,
  missingValue,
  objectOf,
  textOf,
  wrongValue,
} from '../../wire/json.js';
import { shapeOf, unreadMembers } from '../unsupported.js';
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
 * Reads a JSON body of either form, for an upstream that does not accept it unchanged.
 * @param body the body including its long strings
 * @throws {GatewayError} with status 400, naming the path in the body
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
  const { prompt, images, unread } = decodeInput(operation, body.input);
  const settings = decodeSettings(body, objectOf(body.parameters));
  if (settings.stream) throw notWithInput('stream', "Leave it out, or send the text as 'prompt'.");
  return {
    ...settings,
    responseFormat: settings.responseFormat ?? 'url',
    operation,
    form: 'input',
    prompt: requirePrompt(prompt, 'input.messages'),
    images: requireImages(operation, images, 'input.messages'),
    mask: null,
    otherFiles: [],
    unread,
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

/** A body with a prompt, read from JSON or a form. */
interface PromptParts {
  /** Everything but the images. */
  readonly fields: JsonObject;
  readonly images: readonly ImageSource[];
  /** Name of the member with the images. */
  readonly imagesAt: string;
  readonly mask: ImageSource | null;
  readonly otherFiles: readonly NamedFile[];
}

/**
 * Makes the request for a validated body with a prompt.
 * @throws {GatewayError} with status 400, naming the member
 */
export function promptRequest(
  operation: ImageOperation,
  { fields, images, imagesAt, mask, otherFiles }: PromptParts,
): ImageRequest {
  return {
    ...decodeSettings(fields, null),
    operation,
    form: 'prompt',
    prompt: requirePrompt(textOf(fields.prompt), 'prompt'),
    images: requireImages(operation, images, imagesAt),
    mask,
    otherFiles,
    unread: [],
  };
}

function notWithInput(at: string, advice: string): GatewayError {
  return memberError('unsupported_parameter', at, `'${at}' is not supported beside 'input'. ${advice}`);
}

/** Reads the images of a member that contains one or a list. */
function referencesIn(body: JsonObject, member: string): readonly ImageSource[] {
  const given = body[member] ?? null;
  if (Array.isArray(given))
    return given.map((reference, index) => decodeReference(reference, `${member}[${index}]`));
  return given === null ? [] : [decodeReference(given, member)];
}

function decodeReference(reference: unknown, at: string): ImageSource {
  if (typeof reference === 'string') return readImageText(reference, at);
  const { image_url: url, file_id: file } = objectOf(reference);
  if ((file ?? null) !== null) {
    throw memberError(
      'unsupported_parameter',
      `${at}.file_id`,
      `'${at}.file_id' is not supported: files are not kept here. Send the image in '${at}.image_url', as a URL or a data URL.`,
    );
  }
  if (typeof url !== 'string') throw missingValue(`${at}.image_url`, 'the URL of an image or a data URL');
  return readImageText(url, `${at}.image_url`);
}

function requirePrompt(prompt: string, at: string): string {
  if (prompt === '') {
    if (at === 'prompt') throw missingValue(at, 'a non-empty string');
    const message = `'${at}' has no text: expected an item with a 'text' that says what the image is to be.`;
    throw memberError('missing_parameter', at, message);
  }
  // A surrogate pair is one character.
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
    throw memberError(
      'missing_parameter',
      at,
      `Missing an image to edit: expected at least one in '${at}'. Without one, use POST /v1/images/generations.`,
    );
  }
  if (images.length > mostImages) throw wrongValue(at, `at most ${mostImages} images`);
  return images;
}

/** Content of the messages of an `input`. */
interface DecodedInput {
  /** The texts, one per line. */
  readonly prompt: string;
  /** In the order of the messages. */
  readonly images: readonly ImageSource[];
  /** Names of what is not read. */
  readonly unread: readonly string[];
}

const wholeMessage = shapeOf('role', { content: shapeOf('type', 'text', 'image') });
const imageMessage = shapeOf('role', { content: shapeOf('type', 'image') });
const wholeInput = shapeOf({ input: shapeOf({ messages: wholeMessage }) });
/** What is read where a user says what the image is to be. */
const inputOfUser = shapeOf({
  input: shapeOf({ messages: ({ role }) => (isUser(role) ? wholeMessage : imageMessage) }),
});

/** A message without a role, or with one of the client's own, is the user's. */
function isUser(role: unknown): boolean {
  return role !== 'system' && role !== 'assistant';
}

/**
 * Reads `input`: the texts of the user's messages, or of all if these have none, and the images of all messages, with which a
 * conversation goes on.
 * @throws {GatewayError} with status 400, naming the path, for any other content
 */
function decodeInput(operation: ImageOperation, input: unknown): DecodedInput {
  const texts: string[] = [];
  const ofUser: string[] = [];
  const images: ImageSource[] = [];
  for (const [index, message] of listOf(isObject(input) ? input.messages : null).entries()) {
    const { role, content } = objectOf(message);
    for (const [place, item] of listOf(content).entries()) {
      const at = `input.messages[${index}].content[${place}]`;
      const { text, image } = objectOf(item);
      if (typeof text !== 'string' && typeof image !== 'string')
        throw wrongValue(at, "an object with 'text' or 'image'");
      if (typeof text === 'string' && text !== '') {
        texts.push(text);
        if (isUser(role)) ofUser.push(text);
      }
      if (typeof image !== 'string') continue;
      if (operation === 'generate') throw imageOnGeneration(`${at}.image`);
      images.push(readImageText(image, `${at}.image`));
    }
  }
  const isOfUser = ofUser.length > 0;
  return {
    prompt: (isOfUser ? ofUser : texts).join('\n'),
    images,
    unread: unreadMembers({ input }, isOfUser ? inputOfUser : wholeInput),
  };
}
