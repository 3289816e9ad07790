import { randomUUID } from 'node:crypto';
import type { LeftOut } from '../../conversation/left-out.js';
import type { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, listOf, memberError, parseObject } from '../../wire/json.js';
import { noEffects } from '../effects.js';
import { type Endpoint, type OtherForm, plainEndpoint } from '../endpoint.js';
import { amendedTo } from './encoding.js';
import {
  cutVectors,
  listed,
  openaiKey,
  openaiOnGoogle,
  openaiRules,
  openaiUsage,
  unusable,
  vectorsInOrder,
} from './index.js';

/*
 * Embeddings in the form of Cohere's clients (https://docs.cohere.com/reference/embed and its first version). Calls are
 * converted to one of the two other forms: no upstream has this one.
 */

type Version = '1' | '2';

/** Forms of a vector that can be made from those of any upstream. */
const knownTypes: ReadonlySet<unknown> = new Set(['float', 'base64']);
const readMembers = new Set(['model', 'texts', 'inputs', 'images', 'embedding_types', 'output_dimension']);

/** What a body requests. */
interface Wanted {
  readonly texts: readonly string[];
  /** Null for the first version's single list of vectors without types. */
  readonly types: readonly string[] | null;
}

/** Converts a call to `/embeddings`, or to what that is converted to. */
function form(
  version: Version,
  by: Pick<OtherForm, 'kinds' | 'upstreamPath' | 'rules' | 'convert'>,
): OtherForm {
  return {
    ...by,
    convert: (body, names, leftOut) => {
      const wanted = readBody(body, version, leftOut);
      const asked = {
        model: names.upstream,
        input: wanted.texts,
        dimensions: body.output_dimension ?? undefined,
      };
      const request = by.convert(asked, names, leftOut);
      return { body: request.body, answer: (answer) => write(request.answer(answer), wanted, version) };
    },
  };
}

function formsOf(version: Version): readonly OtherForm[] {
  return [
    form(version, {
      kinds: new Set(['chat', 'simulator']),
      upstreamPath: () => '/embeddings',
      rules: openaiRules,
      convert: (body) => ({ body: JSON.stringify(body), answer: (answer) => answer }),
    }),
    form(version, openaiOnGoogle),
  ];
}

function cohereEndpoint(version: Version): Endpoint {
  return {
    ...plainEndpoint,
    ...openaiRules,
    protocol: 'embeddings',
    upstreamPath: () => '/embed',
    otherForms: formsOf(version),
    hasEffects: noEffects,
  };
}

/** `POST /v1/embed` */
export const embedV1: Endpoint = cohereEndpoint('1');

/** `POST /v2/embed` */
export const embedV2: Endpoint = cohereEndpoint('2');

function readBody(body: JsonObject, version: Version, leftOut: LeftOut): Wanted {
  for (const [name, value] of Object.entries(body))
    if (value !== null && !readMembers.has(name)) leftOut.add(name);
  if (listOf(body.images).length > 0) throw noText('images');
  const types = body.embedding_types ?? (version === '1' ? null : ['float']);
  if (types !== null && !Array.isArray(types))
    throw memberError('invalid_value', 'embedding_types', "'embedding_types' must be a list.");
  const odd = types?.find((type) => !knownTypes.has(type));
  if (odd !== undefined)
    throw memberError(
      'unsupported_parameter',
      'embedding_types',
      "'embedding_types' may have 'float' and 'base64' for this model, whose upstream has embeddings in another form.",
    );
  return { texts: textsOf(body), types: types === null ? null : [...new Set(types.map(String))] };
}

function textsOf({ texts, inputs }: JsonObject): readonly string[] {
  if (Array.isArray(texts) && texts.length > 0)
    return texts.map((text, index) => {
      if (typeof text === 'string') return text;
      throw noText(`texts[${index}]`);
    });
  if (!Array.isArray(inputs) || inputs.length === 0)
    throw memberError('missing_parameter', 'texts', "'texts' must name at least one text.");
  return inputs.map((input, index) => {
    const parts = isObject(input) ? listOf(input.content) : [];
    const said = parts.map((part) => {
      if (isObject(part) && typeof part.text === 'string') return part.text;
      throw noText(`inputs[${index}].content`);
    });
    if (said.length === 0) throw noText(`inputs[${index}].content`);
    return said.join('\n');
  });
}

function noText(at: string): GatewayError {
  return memberError('unsupported_parameter', at, `'${at}' is no text: for this model send texts.`);
}

/** @param answer an answer of `/embeddings` */
function write(answer: Buffer, { texts, types }: Wanted, version: Version): Buffer {
  const lists = new Map<string, Buffer>();
  if (types === null || types.includes('float')) lists.set('float', floats(answer, texts.length));
  if (types?.includes('base64')) lists.set('base64', base64(answer, texts.length));
  const tokens = openaiUsage(answer)?.input ?? 0;
  const meta = { api_version: { version }, billed_units: { input_tokens: tokens } };
  const said = `,"texts":${JSON.stringify(texts)},"meta":${JSON.stringify(meta)}}`;
  const begun = `{"id":"${randomUUID()}","response_type":`;
  if (types === null)
    return Buffer.concat([
      Buffer.from(`${begun}"embeddings_floats","embeddings":`),
      lists.get('float') ?? Buffer.from('[]'),
      Buffer.from(said),
    ]);
  const pieces = [...lists].flatMap(([type, list], index) => [
    Buffer.from(`${index === 0 ? '' : ','}"${type}":`),
    list,
  ]);
  return Buffer.concat([
    Buffer.from(`${begun}"embeddings_by_type","embeddings":{`),
    ...pieces,
    Buffer.from(`}${said}`),
  ]);
}

/** Returns the list of all vectors, each as it was written. */
function floats(answer: Buffer, count: number): Buffer {
  const vectors = vectorsInOrder(cutVectors(amendedTo(false, answer), openaiKey), count);
  return Buffer.concat([Buffer.from('['), ...listed(vectors, () => '', ''), Buffer.from(']')]);
}

/** Returns the same as single-precision numbers, little-endian, in base64. */
function base64(answer: Buffer, count: number): Buffer {
  const data = listOf(parseObject(amendedTo(true, answer).toString('utf8'))?.data);
  const list: string[] = [];
  for (const [position, item] of data.entries()) {
    if (!isObject(item) || typeof item.embedding !== 'string') continue;
    list[typeof item.index === 'number' && item.index < count ? item.index : position] = item.embedding;
  }
  const complete = Array.from({ length: count }, (_, index) => list[index]);
  if (complete.includes(undefined)) throw unusable('fewer embeddings than texts');
  return Buffer.from(JSON.stringify(complete));
}
