import { type TObject, Type } from 'typebox';
import type { GatewayError } from '../errors.js';
import { memberError, missingValue } from '../wire/json.js';
import { MemberGuard } from '../wire/member-guard.js';
import { nameWithoutBrackets, type PartRules } from '../wire/part-names.js';
import type { CompiledSchema } from './accept.js';
import { compileSchema } from './compile.js';
import { asSchema, type SchemaNode } from './node.js';

type Values = Readonly<Record<string, unknown>>;

/** The description of a form. */
interface FormParts {
  /** Its fields, as members of an object: texts, booleans, and lists of texts, which may be sent as several fields. */
  readonly fields: TObject;
  /** Names of the required files. */
  readonly files: readonly string[];
  /** Names of fields that may be sent in parts, with brackets after the name. */
  readonly split?: readonly string[];
}

/** A check of forms that is built once and run for every form. */
export interface FormSchema {
  /** Rules against ambiguous names of parts. */
  readonly names: PartRules;
  readonly files: readonly string[];
  readonly kinds: ReadonlyMap<string, FieldKind>;
  readonly whole: CompiledSchema;
  /** The same check without required members. */
  readonly begun: CompiledSchema;
}

/** A text, `true` or `false`, or a list of texts. */
type FieldKind = 'text' | 'flag' | 'list';

interface Field {
  readonly name: string;
  readonly value: string;
}

interface File {
  readonly name: string;
}

/** Compiles the check of a form. */
export function compileForm({ fields, files, split = [] }: FormParts): FormSchema {
  const properties = Object.entries(asSchema(fields).properties ?? {});
  const kinds = new Map(properties.map(([name, node]) => [name, kindOf(asSchema(node))]));
  const lists = [...kinds].filter(([, kind]) => kind === 'list').map(([name]) => name);
  return {
    names: {
      guard: new MemberGuard({ reads: [...kinds.keys(), ...files], steers: true }),
      many: new Set([...lists, ...split, ...files]),
    },
    files,
    kinds,
    whole: compileSchema(fields),
    begun: compileSchema(Type.Partial(fields)),
  };
}

function kindOf({ type }: SchemaNode): FieldKind {
  if (type === 'array') return 'list';
  return type === 'boolean' ? 'flag' : 'text';
}

/**
 * Checks a whole form.
 * @param fields its parts without a filename, in order
 * @param files its parts with a filename
 * @returns its fields as an object. Values are booleans where the schema has these, else strings. Arrays of the schema,
 * names that end in `[]` (which is removed), and repeated unknown names become lists.
 * @throws {GatewayError} of status 400, naming the field or file
 */
export function checkForm(schema: FormSchema, fields: readonly Field[], files: readonly File[]): Values {
  const values = checkParts(schema, fields, files, schema.whole);
  for (const name of schema.files) {
    if (files.some((file) => baseOf(file.name) === name)) continue;
    throw missingValue(name, 'a file');
  }
  return values;
}

/**
 * Checks the beginning of a form whose rest has not arrived: its values, but not missing fields or combinations.
 * @returns as `checkForm`
 * @throws {GatewayError} of status 400, for a fault that the rest cannot correct
 */
export function checkFormStart(schema: FormSchema, fields: readonly Field[], files: readonly File[]): Values {
  return checkParts(schema, fields, files, schema.begun);
}

function checkParts(
  schema: FormSchema,
  fields: readonly Field[],
  files: readonly File[],
  check: CompiledSchema,
): Values {
  requireFiles(schema, fields, files);
  const values = readFields(schema, fields);
  if (!check.check(values)) throw check.explain(values);
  return values;
}

/** Requires that files are sent as files, and only once, and that fields are not. */
function requireFiles(
  { files: wanted, kinds }: FormSchema,
  fields: readonly Field[],
  files: readonly File[],
) {
  const field = fields.find(({ name }) => wanted.includes(baseOf(name)));
  if (field !== undefined) {
    throw refused(baseOf(field.name), "has no filename: send it as a file, with 'filename' beside its name");
  }
  const file = files.find(({ name }) => kinds.has(baseOf(name)));
  if (file !== undefined) {
    throw refused(baseOf(file.name), 'is sent as a file: send it as a field, without a filename');
  }
  for (const name of wanted) {
    if (files.filter((each) => nameWithoutBrackets(each.name) === name).length > 1) throw repeated(name);
  }
}

function readFields({ kinds }: FormSchema, fields: readonly Field[]): Values {
  const texts = new Map<string, { readonly values: string[]; bracketed: boolean }>();
  for (const { name, value } of fields) {
    const base = baseOf(name);
    const entry = texts.get(base) ?? { values: [], bracketed: false };
    entry.values.push(value);
    entry.bracketed ||= base !== name;
    texts.set(base, entry);
  }
  return Object.fromEntries(
    [...texts].map(([name, { values, bracketed }]) => {
      const kind = kinds.get(name);
      const read = kind === 'flag' ? values.map(flagOf) : values;
      const many = bracketed || values.length > 1;
      // Parsers differ in which occurrence they use.
      if (values.length > 1 && kind !== undefined && kind !== 'list') throw repeated(name);
      return [name, many || kind === 'list' ? read : read[0]];
    }),
  );
}

/** Returns the text itself if it is neither. */
function flagOf(text: string): boolean | string {
  const lower = text.toLowerCase();
  return lower === 'true' || lower === 'false' ? lower === 'true' : text;
}

/** Removes the brackets with which clients mark list items: `include[]` to `include`. */
function baseOf(name: string): string {
  return name.length > 2 && name.endsWith('[]') ? name.slice(0, -2) : name;
}

function repeated(name: string): GatewayError {
  return refused(name, 'comes more than once: send it once');
}

function refused(name: string, what: string): GatewayError {
  return memberError('invalid_request', name, `The part '${name}' of the form ${what}.`);
}
