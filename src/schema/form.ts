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
  /** Its text fields, as members of an object. An array may be sent as several fields. */
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

/** The types that a field may have. */
interface FieldKind {
  /** Types of its value, or of the items of its list. */
  readonly types: ReadonlySet<string>;
  readonly isList: boolean;
  readonly isSingle: boolean;
}

interface Field {
  readonly name: string;
  readonly value: string;
}

interface File {
  readonly name: string;
}

/**
 * Compiles the check of a form.
 * @throws {Error} At start, for a schema that `explain` does not support.
 */
export function compileForm({ fields, files, split = [] }: FormParts): FormSchema {
  const properties = Object.entries(asSchema(fields).properties ?? {});
  const kinds = new Map(properties.map(([name, node]) => [name, kindOf(asSchema(node))]));
  const lists = [...kinds].filter(([, { isList }]) => isList).map(([name]) => name);
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

function kindOf(schema: SchemaNode): FieldKind {
  const nodes = branchesOf(schema);
  const lists = nodes.filter(({ type }) => type === 'array');
  const singles = nodes.filter(({ type }) => type !== 'array');
  const items = lists.flatMap(({ items }) => (typeof items === 'object' ? branchesOf(items) : []));
  return {
    types: new Set([...singles, ...items].flatMap(typesOf)),
    isList: lists.length > 0,
    isSingle: singles.length > 0,
  };
}

function branchesOf(schema: SchemaNode): readonly SchemaNode[] {
  return schema.anyOf === undefined ? [schema] : schema.anyOf.flatMap(branchesOf);
}

function typesOf(schema: SchemaNode): readonly string[] {
  if ('const' in schema) return [typeof schema.const];
  if (schema.enum !== undefined) return schema.enum.map((constant) => typeof constant);
  return typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['string']);
}

/**
 * Checks a whole form.
 * @param fields its parts without a filename, in order
 * @param files its parts with a filename
 * @returns its fields as an object. Values are numbers or booleans where the schema has these, and strings for unknown
 * fields. Arrays of the schema, names that end in `[]` (which is removed), and repeated unknown names become lists.
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
      const read = kind === undefined ? values : values.map((text) => convert(text, kind.types));
      const many = bracketed || values.length > 1;
      // Parsers differ in which occurrence they use.
      if (values.length > 1 && kind !== undefined && !kind.isList) throw repeated(name);
      return [name, many || (kind?.isList === true && !kind.isSingle) ? read : read[0]];
    }),
  );
}

/** Unambiguous, so that a text of a million digits is matched in one pass. */
const number = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const yes = /^true$/i;
const no = /^false$/i;

/** Converts a text to one of the types; returns the text if it fits none. */
function convert(text: string, types: ReadonlySet<string>): unknown {
  if (types.has('string')) return text;
  if ((types.has('number') || types.has('integer')) && number.test(text)) return Number(text);
  if (types.has('boolean') && yes.test(text)) return true;
  return types.has('boolean') && no.test(text) ? false : text;
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
