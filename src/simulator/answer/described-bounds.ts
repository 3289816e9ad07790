import type { JsonObject } from '../http/json.js';

const bound =
  /[{ ](minItems|maxItems|minimum|maximum|exclusiveMinimum|exclusiveMaximum|minLength|maxLength|multipleOf): (-?\d{1,15}(?:\.\d{1,15})?)(?=[,}])/g;

/**
 * A schema with the bounds that its description has in braces at its end (`{minItems: 2}`): vendors' SDKs write there what
 * a schema may not say, and a model reads it.
 */
export function withDescribedBounds(schema: JsonObject): JsonObject {
  const { description } = schema;
  if (typeof description !== 'string' || !description.endsWith('}')) return schema;
  const bounds = [...description.matchAll(bound)].map(([, name = '', value]) => [name, Number(value)]);
  return { ...Object.fromEntries(bounds), ...schema };
}
