import type { GatewayError } from '../../errors.js';
import { type ImageSource, readImageFile } from '../../media/image.js';
import { readImageText } from '../../media/image-text.js';
import { entryOf } from '../../wire/entry-of.js';
import { memberError, noFile } from '../../wire/json.js';
import type { FormPart } from '../../wire/multipart.js';
import { promptRequest } from './decode.js';
import { type ImageOperation, type ImageRequest, imageOnGeneration, type NamedFile } from './request.js';
import { formFields, formFieldsType } from './schema.js';

/** Names of the images in a form: one or several, with or without brackets after the name. */
export const imageName = /^image(?:\[\d*\])?$/;
const numbers: ReadonlySet<string> = new Set([
  'n',
  'output_compression',
  'partial_images',
  'frame_count',
  'frame_duration_ms',
]);
const flags: ReadonlySet<string> = new Set(['stream', 'prompt_extend', 'watermark']);
/** Fields that count even if they are empty. */
const required: ReadonlySet<string> = new Set(['model', 'prompt']);

/**
 * Reads a form with a prompt, for an upstream that does not accept it unchanged: text fields, and for an edit the
 * images and an optional mask.
 * @throws {GatewayError} with status 400, naming the field
 */
export function decodeImageForm(operation: ImageOperation, parts: readonly FormPart[]): ImageRequest {
  const images: ImageSource[] = [];
  let mask: ImageSource | null = null;
  const otherFiles: NamedFile[] = [];
  const texts = new Map<string, string[]>();
  for (const part of parts) {
    const { name } = part;
    // Browsers send this if no file was chosen.
    if (part.filename === '' && part.data.length === 0) continue;
    const isImage = imageName.test(name);
    if (isImage || name === 'mask') {
      if (operation === 'generate') throw imageOnGeneration(name);
      if (isImage) images.push(readImage(part));
      else if (mask === null) mask = readImage(part);
      else throw givenTwice(name);
    } else if (part.filename !== null) {
      if (operation === 'generate' || Object.hasOwn(formFieldsType.properties, name)) throw noFile(name);
      otherFiles.push(part);
    } else entryOf(texts, name, (): string[] => []).push(part.data.toString('utf8'));
  }
  const fields = Object.fromEntries(
    [...texts].flatMap(([name, values]) => {
      const value = readField(name, values);
      return value === null ? [] : [[name, value]];
    }),
  );
  if (!formFields.check(fields)) throw formFields.explain(fields);
  return promptRequest(operation, { fields, images, imagesAt: 'image', mask, otherFiles });
}

/** Returns whether an image is not a file: clients without files send it as text. */
export function isTextPart({ filename, contentType }: FormPart): boolean {
  return filename === null && (contentType === null || /^text\//i.test(contentType));
}

function readImage(part: FormPart): ImageSource {
  const { name, filename, contentType, data } = part;
  return isTextPart(part)
    ? readImageText(data.toString('utf8'), name)
    : readImageFile({ data, contentType, filename }, name);
}

/** Returns the value of a text field, or null if it is empty. A value that does not have its type remains a text. */
function readField(name: string, values: readonly string[]): unknown {
  const [text = '', ...more] = values;
  if (more.length > 0) {
    if (Object.hasOwn(formFieldsType.properties, name)) throw givenTwice(name);
    return values;
  }
  if (text === '' && !required.has(name)) return null;
  if (numbers.has(name) && /^\d{1,9}$/.test(text)) return Number(text);
  if (flags.has(name) && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === 'true';
  return text;
}

function givenTwice(name: string): GatewayError {
  return memberError('invalid_request', name, `The form has '${name}' more than once: send it once.`);
}
