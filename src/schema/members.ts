import { type TSchema, Type } from 'typebox';

/*
 * Pieces that the schemas of request bodies are made of. Known members are checked for type and documented range;
 * whatever is not known passes: members, roles, types of tools and of content parts, and values of settings that grow
 * with every model. An upstream of the same protocol knows better than we do.
 */

/** A member that may be left out or null. */
export const nullable = (schema: TSchema) => Type.Optional(Type.Union([schema, Type.Null()]));
export const text = nullable(Type.String());
export const flag = nullable(Type.Boolean());
export const record = nullable(Type.Object({}));
export const name = Type.String({ minLength: 1 });

/** An object of a `type` that is in none of the other branches of its union. */
export const otherType = (known: readonly string[]) =>
  Type.Object({ type: Type.Unsafe<string>({ type: 'string', not: { enum: known } }) });

/** An object whose values are all of one schema. TypeBox's own record tests each key against a pattern. */
export const mapOf = (values: TSchema, limits: { maxProperties?: number } = {}) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: values, ...limits });
