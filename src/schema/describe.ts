import type { SchemaNode } from './node.js';

/**
 * What a schema wants, in a few words: `a number between 0 and 2`, `a string, an array or null`.
 * @returns Words that fit after "expected".
 */
export function describe(schema: SchemaNode | boolean): string {
  if (schema === true) return 'any value';
  if (schema === false) return 'nothing';
  if (schema.anyOf !== undefined) {
    return either([...new Set(alternatives(schema.anyOf))]);
  }
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return either(quoted(schema.enum));
  if (schema.type === undefined) return 'another value';
  if (schema.not?.enum !== undefined) return `a ${schema.type} other than ${either(quoted(schema.not.enum))}`;
  if (typeof schema.type !== 'string') return either(schema.type.map((type) => describeType(type, schema)));
  return describeType(schema.type, schema);
}

/**
 * What a value is: its type, and for numbers, booleans and short texts where asked, the value itself.
 * @param value A parsed JSON value.
 * @param quote True where the value of a string matters, as with constants. Long strings are never quoted.
 * @returns Words that fit after "found".
 */
export function nameFound(value: unknown, quote: boolean): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${count(value)}`;
  switch (typeof value) {
    case 'string':
      if (value === '') return 'an empty string';
      return quote && value.length <= 40 ? JSON.stringify(value) : 'a string';
    case 'number':
      if (!Number.isFinite(value)) return 'a number out of range';
      return quote ? String(value) : 'a number';
    case 'boolean':
      return String(value);
    default:
      return 'an object';
  }
}

function quoted(values: readonly unknown[]): string[] {
  return values.map((value) => JSON.stringify(value));
}

function count(items: readonly unknown[]): string {
  return items.length === 1 ? '1 item' : `${items.length} items`;
}

/** Every branch in words; in such a list the length of an array would only confuse. */
function alternatives(branches: readonly SchemaNode[]): string[] {
  return branches.flatMap((branch) => {
    if (branch.anyOf !== undefined) return alternatives(branch.anyOf);
    return [branch.type === 'array' ? 'an array' : describe(branch)];
  });
}

function describeType(type: string, schema: SchemaNode): string {
  switch (type) {
    case 'integer':
      return `an integer${range(schema)}`;
    case 'number':
      return `a number${range(schema)}`;
    case 'string':
      return schema.minLength === undefined ? 'a string' : 'a non-empty string';
    case 'array':
      return `an array${items(schema)}`;
    case 'object':
      return schema.maxProperties === undefined
        ? 'an object'
        : `an object of at most ${schema.maxProperties} member${schema.maxProperties === 1 ? '' : 's'}`;
    case 'null':
      return 'null';
    default:
      return `a ${type}`;
  }
}

function range(schema: SchemaNode): string {
  const bounds: string[] = [];
  if (schema.minimum !== undefined && schema.maximum !== undefined) {
    return ` between ${schema.minimum} and ${schema.maximum}`;
  }
  if (schema.minimum !== undefined) bounds.push(`of at least ${schema.minimum}`);
  if (schema.exclusiveMinimum !== undefined) bounds.push(`above ${schema.exclusiveMinimum}`);
  if (schema.maximum !== undefined) bounds.push(`of at most ${schema.maximum}`);
  if (schema.exclusiveMaximum !== undefined) bounds.push(`below ${schema.exclusiveMaximum}`);
  return bounds.length === 0 ? '' : ` ${bounds.join(' and ')}`;
}

function items(schema: SchemaNode): string {
  const least = schema.minItems;
  const most = schema.maxItems;
  if (least !== undefined && most !== undefined) return ` of ${least} to ${most} items`;
  if (least !== undefined) return ` of at least ${least} item${least === 1 ? '' : 's'}`;
  if (most !== undefined) return ` of at most ${most} item${most === 1 ? '' : 's'}`;
  return '';
}

function either(words: readonly string[]): string {
  const last = words[words.length - 1] ?? 'nothing';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`;
}
