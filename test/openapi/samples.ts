import { Compile } from 'typebox/schema';
import type { VendorWords } from '../../src/config/types.js';
import { createOpenApi } from '../../src/openapi/document.js';

/** The words of a gateway whose config names none. */
export const words: VendorWords = {
  vendorc: ['anthropic'],
  vendorg: ['goog'],
  vendork: ['kling'],
  vendorj: ['jimeng'],
};

export const document = createOpenApi({ version: '1.2.3', publicUrl: 'https://gateway.example', words });

/** The check that a named schema of the document stands for. */
export function checkOf(name: string): (value: unknown) => boolean {
  const { components } = document;
  if (components.schemas[name] === undefined) throw new Error(`There is no schema ${name}.`);
  const compiled = Compile({ $ref: `#/components/schemas/${name}`, components });
  return (value) => compiled.Check(value);
}

/** A named schema with everything that it refers to in its place. */
export function wholeSchema(name: string): unknown {
  return inPlace({ $ref: `#/components/schemas/${name}` });
}

function inPlace(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inPlace);
  if (typeof value !== 'object' || value === null) return value;
  const { $ref } = value as { readonly $ref?: unknown };
  if (typeof $ref === 'string') return inPlace(document.components.schemas[$ref.split('/').at(-1) ?? '']);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, inPlace(inner)]));
}
