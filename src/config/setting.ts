import { type TProperties, type TSchema, Type } from 'typebox';

/**
 * A schema with what the manual says of the setting, in one or two sentences of Markdown.
 * @returns a copy, with the properties that TypeBox keeps hidden
 */
export function described<Schema extends TSchema>(description: string, schema: Schema): Schema {
  const properties = Object.getOwnPropertyDescriptors(schema);
  return Object.defineProperties(
    {},
    { ...properties, description: { value: description, enumerable: true } },
  ) as Schema;
}

/** The same for a setting that a file may leave out. */
export function optional<Schema extends TSchema>(description: string, schema: Schema) {
  return Type.Optional(described(description, schema));
}

/** An object of these properties and no others. */
export function closedObject<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** What may stand in a header value: nothing that could end the line, in whichever way its characters are written. */
export const headerValue = { pattern: '^[\\t\\u0020-\\u007e]*$', expected: 'a valid header value' };
