import { test } from 'tap';
import { ArgumentPlaces } from '../../src/conversation/argument-places.js';

/** Whether the last string of a body is within arguments. */
function holdsLast(body: string): boolean {
  const end = body.lastIndexOf('"');
  return new ArgumentPlaces(Buffer.from(body)).hold(body.lastIndexOf('"', end - 1));
}

test('the place of a string is known behind any amount of white space, but not of other bytes', (t) => {
  const much = 3 * 1024 * 1024;
  const message = (before: string, member: string) =>
    `{"messages":[${before}{"content":[{"type":"x","${member}":{"image":"A"}}]}]}`;
  for (const space of [' ', '\n', '\t', '\r\n    ']) {
    const before = `[],${space.repeat(much / space.length)}`;
    t.equal(holdsLast(message(before, 'given')), false);
    t.equal(holdsLast(message(before, 'input')), true);
  }
  t.equal(holdsLast(message('[],'.repeat(much / 3), 'given')), true, 'in doubt it is in arguments');
  t.end();
});
