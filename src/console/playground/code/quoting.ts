import { isObject, type Json } from '../json.js';

/** Quotes any text as a single word of a POSIX shell. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The literals of a language for JSON values. */
export interface Language {
  readonly step: string;
  readonly words: { readonly true: string; readonly false: string; readonly null: string };
  text(value: string): string;
  member(name: string): string;
  /** Written before and after the members of a one-line object. */
  readonly padding: string;
}

export const python: Language = {
  step: '    ',
  words: { true: 'True', false: 'False', null: 'None' },
  // JSON's escapes are also valid in Python.
  text: (value) => JSON.stringify(value),
  member: (name) => `${JSON.stringify(name)}: `,
  padding: '',
};

export const typescript: Language = {
  step: '  ',
  words: { true: 'true', false: 'false', null: 'null' },
  text: singleQuoted,
  member: (name) => `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : singleQuoted(name)}: `,
  padding: ' ',
};

/** Longer values are written over several lines. */
const longestLine = 80;

/**
 * Writes a value as a literal.
 * @param indent indentation of the first line
 */
export function literal(value: Json, language: Language, indent = ''): string {
  const flat = flatLiteral(value, language);
  if (flat.length + indent.length <= longestLine) return flat;
  const inner = indent + language.step;
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((each: Json) => literal(each, language, inner))
    : isObject(value)
      ? Object.entries(value).map(
          ([name, each]) => language.member(name) + literal(each as Json, language, inner),
        )
      : [];
  if (items.length === 0) return flat;
  const lines = items.map((item) => `${inner}${item},\n`).join('');
  return isList ? `[\n${lines}${indent}]` : `{\n${lines}${indent}}`;
}

function flatLiteral(value: Json, language: Language): string {
  if (typeof value === 'string') return language.text(value);
  if (typeof value === 'number') return `${value}`;
  if (value === null || typeof value === 'boolean') return language.words[`${value}`];
  if (Array.isArray(value)) return `[${value.map((each: Json) => flatLiteral(each, language)).join(', ')}]`;
  const members = Object.entries(value).map(
    ([name, each]) => language.member(name) + flatLiteral(each as Json, language),
  );
  return members.length === 0 ? '{}' : `{${language.padding}${members.join(', ')}${language.padding}}`;
}

/** Escaped as in JSON, except for the quotes. */
function singleQuoted(text: string): string {
  const inner = JSON.stringify(text).slice(1, -1);
  return `'${inner.replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}
