/** The subset of JSON Schema that describes request bodies. */
export interface SchemaNode {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly not?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly properties?: Readonly<Record<string, SchemaNode | boolean>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: SchemaNode | boolean;
  readonly maxProperties?: number;
  readonly items?: SchemaNode | boolean;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Every keyword above, with the form of its value. */
export const keywords: Readonly<Record<string, 'plain' | 'schema' | 'schemas'>> = {
  type: 'plain',
  const: 'plain',
  enum: 'plain',
  not: 'schema',
  anyOf: 'schemas',
  properties: 'schemas',
  required: 'plain',
  additionalProperties: 'schema',
  maxProperties: 'plain',
  items: 'schema',
  minItems: 'plain',
  maxItems: 'plain',
  minLength: 'plain',
  minimum: 'plain',
  maximum: 'plain',
};

/**
 * Views a TypeBox schema as JSON Schema.
 * @throws {Error} For anything but an object.
 */
export function asSchema(schema: unknown): SchemaNode {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new Error('A schema must be an object.');
  }
  return schema as SchemaNode;
}

/** Whether a parsed JSON value has a schema type. */
export function isType(type: string, value: unknown): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'null':
      return value === null;
    case 'integer':
      return Number.isInteger(value);
    case 'number':
      return Number.isFinite(value);
    default:
      return typeof value === type;
  }
}
