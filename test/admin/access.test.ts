import { test } from 'tap';
import { checkAccess } from '../../src/admin/routes.js';

/** The header as Node reads what a client has sent in this encoding. */
function sent(token: string, encoding: 'utf8' | 'latin1'): string {
  return `Bearer ${Buffer.from(token, encoding).toString('latin1')}`;
}

test('a token may end in a character whose last byte is a blank in Latin-1', async (t) => {
  const tokens = { token: 'ceci-est-fait-à', readToken: null, metricsToken: null };
  for (const encoding of ['utf8', 'latin1'] as const)
    t.equal(checkAccess(`${sent(tokens.token, encoding)} \t`, tokens, 'write'), 'write', encoding);
});

test('a token that is not ASCII is taken from clients that send UTF-8, and from browsers', async (t) => {
  const tokens = { token: 'Ärger-über-das-Übel', readToken: 'correct horse battery', metricsToken: null };
  for (const encoding of ['utf8', 'latin1'] as const) {
    t.equal(checkAccess(sent(tokens.token, encoding), tokens, 'write'), 'write', encoding);
    t.equal(checkAccess(sent(tokens.readToken, encoding), tokens, 'read'), 'read', encoding);
    t.throws(() => checkAccess(sent('Arger-uber-das-Ubel', encoding), tokens, 'read'), {
      message: /missing or wrong/,
    });
  }
});
