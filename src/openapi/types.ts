/*
 * The OpenAPI 3.1.0 types used by several parts of the gateway's document. All of them are plain JSON.
 */

/** A schema of JSON Schema 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A reference to an entry of `components`. */
export interface Reference {
  readonly $ref: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
}

/** Bodies, by content type. */
export type Content = Readonly<Record<string, { readonly schema: JsonSchema | Reference }>>;

export interface Response {
  readonly description: string;
  /** By name. */
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly content?: Content;
}
