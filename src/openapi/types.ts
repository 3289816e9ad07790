/*
 * The parts of OpenAPI 3.1.0 that the gateway's document has. All of it is plain JSON.
 */

/** A schema of JSON Schema 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Stands for something under `components`. */
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

export interface Header {
  readonly description: string;
  readonly schema: JsonSchema;
}

/** A body of one content type. */
export interface MediaType {
  readonly schema: JsonSchema | Reference;
}

export interface RequestBody {
  readonly description?: string;
  readonly required: boolean;
  /** By content type. */
  readonly content: Readonly<Record<string, MediaType>>;
}

export interface Response {
  readonly description: string;
  /** By name. */
  readonly headers?: Readonly<Record<string, Reference>>;
  /** By content type. */
  readonly content?: Readonly<Record<string, MediaType>>;
}

/** Names of security schemes; a request that fits one entry of a list is signed in. */
export type SecurityRequirement = Readonly<Record<string, readonly string[]>>;

export interface SecurityScheme {
  readonly type: 'http' | 'apiKey';
  readonly description: string;
  readonly scheme?: 'bearer';
  readonly name?: string;
  readonly in?: 'header' | 'query';
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: RequestBody;
  /** By status, or `default`. */
  readonly responses: Readonly<Record<string, Response | Reference>>;
  readonly security: readonly SecurityRequirement[];
}

/** Operations of one path, by method in lower case. */
type PathItem = Readonly<Record<string, Operation>>;

interface Components {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly responses: Readonly<Record<string, Response>>;
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly headers: Readonly<Record<string, Header>>;
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
}

export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description: string;
  };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  /** By path template. */
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: Components;
}
