import type { TLocalizedValidationError } from 'typebox/error';
import { Settings } from 'typebox/system';
import { compileValidator } from '../schema/validator.js';
import { formatPath, type Problem } from './problem.js';
import { type ConfigFile, configSchema } from './schema.js';
import { suggest } from './suggest.js';

let compiled: ReturnType<typeof compileValidator<typeof configSchema>> | null = null;

function validator(): NonNullable<typeof compiled> {
  compiled ??= compileValidator(configSchema);
  return compiled;
}

/** Enough for any file that a person wrote; TypeBox stops at 8 by default, and the rest would stay unsaid. */
const mostErrors = 1000;

/** Tells whether a value has the config file's shape. */
export function hasConfigShape(value: unknown): value is ConfigFile {
  return validator().Check(value);
}

/** Every place where a value departs from the config file's shape. No message holds a value from the file. */
export function shapeProblems(value: unknown): Problem[] {
  if (validator().Check(value)) return [];
  // The limit is one setting of the whole process: it goes back, because request validation shares it.
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: mostErrors });
  try {
    return validator()
      .Errors(value)
      .flatMap((error) => describe(error, value));
  } finally {
    Settings.Set({ maxErrors });
  }
}

function describe(error: TLocalizedValidationError, value: unknown): Problem[] {
  const segments = segmentsOf(error.instancePath, value);
  const here = (message: string): Problem[] => [{ path: formatPath(segments), message }];
  const below = (names: readonly string[], message: (name: string) => string): Problem[] =>
    names.map((name) => ({ path: formatPath([...segments, name]), message: message(name) }));
  // What each of several forms lacks says less than what is expected of all.
  const forms = /^(.*)\/anyOf\/\d+$/.exec(error.schemaPath)?.[1];
  if (forms !== undefined && schemaAt(forms).expected !== undefined) return [];
  switch (error.keyword) {
    case 'required':
      return below(error.params.requiredProperties, () => 'is required');
    case 'additionalProperties': {
      const known = Object.keys(objectAt(schemaAt(error.schemaPath), 'properties'));
      return below(error.params.additionalProperties, (name) => `unknown property${suggest(name, known)}`);
    }
    case 'boolean':
      // The same unknown property, said by its own `false` schema: reported above.
      return [];
    case 'enum':
      return here(`must be one of ${error.params.allowedValues.join(', ')}`);
    case 'type':
      return here(`must be ${withArticle(String(error.params.type))}`);
    case 'pattern':
    case 'anyOf':
      return here(`must be ${String(schemaAt(error.schemaPath).expected ?? 'of another form')}`);
    case 'minLength':
      return here(error.params.limit === 1 ? 'must not be empty' : error.message);
    case 'minItems':
      return here('must have at least one entry');
    default:
      return here(error.message);
  }
}

function withArticle(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

function pointerParts(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** A JSON pointer (RFC 6901) does not say which of its parts are array indices: the value does. */
function segmentsOf(pointer: string, root: unknown): (string | number)[] {
  let value = root;
  return pointerParts(pointer).map((part) => {
    const segment = Array.isArray(value) ? Number(part) : part;
    value = typeof value === 'object' && value !== null ? Reflect.get(value, part) : undefined;
    return segment;
  });
}

function objectAt(value: unknown, name: string): Record<string, unknown> {
  const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  return typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : {};
}

function schemaAt(schemaPath: string): Record<string, unknown> {
  const root: Record<string, unknown> = { ...configSchema };
  return pointerParts(schemaPath).reduce(objectAt, root);
}
