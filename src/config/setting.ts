import { type TProperties, type TSchema, Type } from 'typebox';

/**
 * Adds the manual's description of a setting to its schema, in one or two sentences of Markdown.
 * @returns a copy, including the properties that TypeBox hides
 */
export function described<Schema extends TSchema>(description: string, schema: Schema): Schema {
  const properties = Object.getOwnPropertyDescriptors(schema);
  return Object.defineProperties(
    {},
    { ...properties, description: { value: description, enumerable: true } },
  ) as Schema;
}

/** Like `described`, for a setting that a file may omit. */
export function optional<Schema extends TSchema>(description: string, schema: Schema) {
  return Type.Optional(described(description, schema));
}

/** An object with these properties and no others. */
export function closedObject<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** A header value. Contains nothing that could end the line, however its characters are encoded. */
export const headerValue = { pattern: '^[\\t\\u0020-\\u007e]*$', expected: 'a valid header value' };
