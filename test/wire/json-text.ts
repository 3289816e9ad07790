import { fc } from '../support/seed.js';

/** Writes a JSON value with the space and the escapes that `numbers` ask for: one text of the many for a value. */
export function writeJson(value: unknown, numbers: readonly number[]): string {
  let turn = 0;
  const noise = (): number => numbers[turn++ % numbers.length] ?? 0;
  const space = (): string => ['', '', '', ' ', '\n', '\t ', '\r\n'][noise() % 7] ?? '';
  const write = (item: unknown): string => {
    if (typeof item === 'string') return writeString(item, noise);
    if (Array.isArray(item)) return `[${space()}${item.map(write).join(`${space()},${space()}`)}${space()}]`;
    if (typeof item !== 'object' || item === null) return JSON.stringify(item);
    const members = Object.entries(item).map(
      ([key, member]) => `${writeString(key, noise)}${space()}:${space()}${write(member)}`,
    );
    return `{${space()}${members.join(`${space()},${space()}`)}${space()}}`;
  };
  return `${space()}${write(value)}${space()}`;
}

function writeString(value: string, noise: () => number): string {
  if (noise() % 3 !== 0) return JSON.stringify(value);
  let text = '';
  for (let i = 0; i < value.length; i++) {
    const unit = value.charCodeAt(i);
    const escaped = unit >= 0xd800 && unit <= 0xdfff ? true : noise() % 4 === 0;
    text += escaped
      ? `\\u${unit.toString(16).padStart(4, '0')}`
      : JSON.stringify(value.charAt(i)).slice(1, -1);
  }
  return `"${text}"`;
}

/** What `writeJson` takes its whims from, over and over. */
export const noise = fc.array(fc.nat(1000), { minLength: 1, maxLength: 30 });

/** Strings of every length around the skeleton's bound, with what needs escaping and what needs several bytes. */
export const anyText = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', '"', '\\', '\n', '{', ',', 'é', '漢', '😀', ' '), maxLength: 12 }),
  fc
    .tuple(
      fc.constantFrom('a', '"', '\\', 'b\\"', '漢', '\n', '😀', 'x: {"y": ['),
      fc.integer({ min: 1, max: 600 }),
    )
    .map(([unit, times]) => unit.repeat(Math.ceil(times / unit.length))),
);

export const anyJson: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    anyText,
    fc.constantFrom(null, true, false, 0, -1, 1.5, 1e21),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyText, tie('value'), { maxKeys: 4 }),
  ),
})).value;

/** What `JSON.parse` makes of a body, or undefined. */
export function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
