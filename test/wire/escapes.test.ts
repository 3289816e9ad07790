import { test } from 'tap';
import { escapesWith, hasEscape, withoutJsonEscapes, withoutUrlEscapes } from '../../src/wire/escapes.js';
import { random } from '../support/seed.js';

/** The same by expressions, which call a function for each escape. */
const jsonEscape = /\\(?:u([0-9a-f]{4})|(.))/gis;
const urlEscapes = /(?:%[0-9a-f]{2})+/gi;
const ofJson = (text: string) =>
  text.replace(jsonEscape, (_, code: string | undefined, plain: string) =>
    code === undefined ? plain : String.fromCharCode(Number.parseInt(code, 16)),
  );
const ofUrl = (text: string) =>
  text.replace(urlEscapes, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString());

function drawn(pieces: readonly string[]): string {
  let text = '';
  for (let left = Math.floor(random() * 20); left > 0; left--)
    text += pieces[Math.floor(random() * pieces.length)] ?? '';
  return text;
}

test('escapes of JSON are removed once, wherever they stand', (t) => {
  t.equal(withoutJsonEscapes('a\\u0062\\"\\\\\\/\\n\\U0063\\u00e9'), 'ab"\\/ncé');
  t.equal(withoutJsonEscapes('\\u12'), 'u12');
  t.equal(withoutJsonEscapes('\\'), '\\');
  const pieces = ['\\', '\\\\', '\\u0041', '\\U00e9', '\\ud83d', 'u', '00', 'a', 'é', '😀', '\n', '"', 'g'];
  for (let i = 0; i < 2000; i++) {
    const text = drawn(pieces);
    if (withoutJsonEscapes(text) !== ofJson(text)) t.equal(withoutJsonEscapes(text), ofJson(text), text);
  }
  t.end();
});

test('escapes of URLs are removed, and what is none stays', (t) => {
  t.equal(withoutUrlEscapes('a%62%2F%c3%A9%'), 'ab/é%');
  t.equal(withoutUrlEscapes('100%zz%4'), '100%zz%4');
  const pieces = ['%', '%41', '%c3%a9', '%2f', 'a', 'é', '4', '1', '%F0%9F%98%80', 'z'];
  for (let i = 0; i < 2000; i++) {
    const text = drawn(pieces);
    if (withoutUrlEscapes(text) !== ofUrl(text)) t.equal(withoutUrlEscapes(text), ofUrl(text), text);
  }
  t.end();
});

test('escapes are found by their first digit or by both, in any case', (t) => {
  const escapes = escapesWith('32', '3a', '5f', '6');
  const has = (json: string) => hasEscape(Buffer.from(json), escapes);
  for (const json of ['\\u0032', 'x\\u003a', '\\u003Ax', '\\u005f', '\\u005F', '\\u0061', '\\u006F'])
    t.ok(has(`"${json}"`), json);
  for (const json of ['', 'a', '\\u0033', '\\u003c', '\\u0027', '\\u00e9', '\\u2061', 'u0061'])
    t.notOk(has(`"${json}"`), json);
  t.end();
});
