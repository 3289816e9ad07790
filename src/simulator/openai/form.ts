import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import { parseObject, type RouteRequest } from '../http/route.js';
import { contentTypeOf } from '../media/route.js';
import { invalid } from './values.js';

/** A file in a form. */
export interface FormFile {
  readonly name: string;
  /** Content type as declared by the client, in lower case. */
  readonly type: string;
  readonly bytes: Buffer;
}

/** The body of a request, from a form or from JSON. */
export interface Fields {
  readonly kind: 'form' | 'json';
  /** Values as in JSON. In a form, `a[]` is an array `a`, and `a[b]` is a member of an object `a`. */
  readonly body: JsonObject;
  /** Files of a form by the name of their field, without brackets. */
  readonly files: ReadonlyMap<string, readonly FormFile[]>;
}

/** The types of a form's text fields, which have none of their own. */
interface FieldTypes {
  readonly numbers?: readonly string[];
  readonly booleans?: readonly string[];
  /** Fields that are arrays with and without brackets. */
  readonly lists?: readonly string[];
}

/**
 * Reads a body of one of the kinds that a route takes.
 * @throws RequestError for another content type, or a body that does not match its type
 */
export async function readFields(
  asked: RouteRequest,
  kinds: readonly Fields['kind'][],
  types: FieldTypes = {},
): Promise<Fields> {
  const type = contentTypeOf(asked);
  const kind = kinds.find((one) => type === mediaTypes[one]);
  if (kind === undefined) {
    const wanted = kinds.map((one) => `'${mediaTypes[one]}'`).join(' or ');
    throw new RequestError(
      400,
      `Unsupported content type: '${type}'. This API method only accepts ${wanted} requests.`,
      null,
      'unsupported_content_type',
    );
  }
  return kind === 'json'
    ? { kind, body: parseObject(asked.body), files: new Map() }
    : readForm(await parsedForm(asked), types);
}

const mediaTypes = { form: 'multipart/form-data', json: 'application/json' } as const;

/** The only file of a field, or null without one. */
export function oneFile(fields: Fields, name: string): FormFile | null {
  const files = fields.files.get(name) ?? [];
  if (files.length > 1) {
    throw new RequestError(400, `Duplicate parameter: '${name}'.`, name, 'duplicate_parameter');
  }
  return files[0] ?? null;
}

/** Parses a form (RFC 7578) with the platform's parser, which is independent of those tested against it. */
async function parsedForm(asked: RouteRequest): Promise<[string, string | FormFile][]> {
  try {
    const headers = { 'content-type': asked.header('content-type') ?? '' };
    const form = await new Response(asked.body, { headers }).formData();
    return await Promise.all(
      [...form].map(async ([name, value]): Promise<[string, string | FormFile]> => {
        if (typeof value === 'string') {
          return [name, value];
        }
        const bytes = Buffer.from(await value.arrayBuffer());
        return [name, { name: value.name, type: value.type.split(';', 1)[0] ?? '', bytes }];
      }),
    );
  } catch {
    throw new RequestError(400, 'Could not parse multipart form.', null, 'invalid_multipart_form');
  }
}

function readForm(parts: readonly [string, string | FormFile][], types: FieldTypes): Fields {
  const values = new Map<string, unknown>();
  const files = new Map<string, FormFile[]>();
  for (const [name, value] of parts) {
    const [, base = name, key] = /^([^[\]]+)\[([^[\]]*)\]$/.exec(name) ?? [];
    if (typeof value !== 'string') {
      files.set(base, [...(files.get(base) ?? []), checkedFile(name, value)]);
    } else if (key === '' || types.lists?.includes(base)) {
      const before = values.get(base);
      values.set(base, Array.isArray(before) ? [...before, value] : [value]);
    } else if (key !== undefined) {
      const before = values.get(base);
      values.set(base, { ...(isObject(before) ? before : {}), [key]: value });
    } else if (values.has(base)) {
      throw new RequestError(400, `Duplicate parameter: '${name}'.`, name, 'duplicate_parameter');
    } else {
      values.set(base, typed(base, value, types));
    }
  }
  return { kind: 'form', body: Object.fromEntries(values), files };
}

function checkedFile(field: string, file: FormFile): FormFile {
  if (file.name === '') {
    throw invalid(field, 'a file with a name');
  }
  if (file.bytes.length === 0) {
    throw invalid(field, 'a file that is not empty');
  }
  return file;
}

/** Converts a text to its field's type; an invalid one stays a text, and is refused later. */
function typed(name: string, text: string, types: FieldTypes): unknown {
  if (types.numbers?.includes(name) && /^-?\d+(?:\.\d+)?$/.test(text)) {
    return Number(text);
  }
  return types.booleans?.includes(name) && (text === 'true' || text === 'false') ? text === 'true' : text;
}
