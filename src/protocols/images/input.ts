import { GatewayError } from '../../errors.js';
import type { ImageSource } from '../../media/image.js';
import { readImageText } from '../../media/image-text.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { wrongValue } from '../../wire/reading.js';
import { imageOnGeneration } from './refusals.js';
import type { ImageOperation } from './request.js';

/** What the messages of an `input` say. */
export interface DecodedInput {
  /** Their texts, one a line. */
  readonly prompt: string;
  /** In their order. */
  readonly images: readonly ImageSource[];
}

/**
 * Reads `input`: texts and images of all its messages, which are the user's.
 * @throws {GatewayError} of status 400, naming the place, for another role, and for content that is neither
 */
export function decodeInput(operation: ImageOperation, input: unknown): DecodedInput {
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
  const { role = null, content = null } = message;
  if (role !== null && role !== 'user') {
    throw new GatewayError(
      'unsupported_parameter',
      `'${at}.role' can only be 'user': an image is made of what the user says. Put the text into a message of the user.`,
      { param: `${at}.role` },
    );
  }
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
