import { test } from 'tap';
import { findBillingLine, withoutBillingLine } from '../../../src/protocols/messages/billing-line.js';

const line = 'x-anthropic-billing-header: cc_version=2.1.37.3a3; cc_entrypoint=cli; cch=a1b2c;';

test('the line is taken out as a text of its own and as the first line of a text', async (t) => {
  t.strictSame(withoutBillingLine([line, 'You are.']), ['You are.']);
  t.strictSame(withoutBillingLine([`${line}\n\nYou are.\n`, 'b']), ['You are.\n', 'b']);
  t.strictSame(withoutBillingLine([`${line}\n`]), []);
});

test('nothing else is taken out', async (t) => {
  for (const system of [[], ['You are.'], ['You are.', line], [`Never say\n${line}`]])
    t.equal(withoutBillingLine(system), system);
});

test('the line is found in the bytes of a body, wherever its string ends', async (t) => {
  for (const [text, rest] of [
    [line, '"}'],
    [`${line}\nYou are.`, '\\nYou are."}'],
  ] as const) {
    const body = Buffer.from(JSON.stringify({ system: text }));
    const found = findBillingLine(body, 1024);
    t.equal(body.toString('latin1', found?.start, found?.end), line);
    t.equal(body.toString('latin1', found?.end), rest);
  }
  t.equal(findBillingLine(Buffer.from(JSON.stringify({ system: 'x' })), 1024), null);
  t.equal(findBillingLine(Buffer.from(JSON.stringify({ a: 'x'.repeat(1024), system: line })), 1024), null);
  t.same(findBillingLine(Buffer.from('x-anthropic-billing-header:'), 1024), { start: 0, end: 27 });
});
