import { test } from 'tap';
import { ownSecrets } from '../../src/config/snapshot.js';
import type { StreamRules } from '../../src/conversation/stream-rules.js';
import { unknownTokens } from '../../src/conversation/usage.js';
import { chat } from '../../src/protocols/chat/index.js';
import { ObservedTransform } from '../../src/stream/observe.js';
import { chatEvent, doneEvent, usageEvent } from '../support/upstream.js';

const awaiting = (rules: StreamRules, alternatives = { mayMoveOn: true }): ObservedTransform =>
  new ObservedTransform({
    rules,
    hideUsage: false,
    streamsUnasked: false,
    amend: null,
    keep: null,
    inputEstimate: 1,
    tokens: unknownTokens,
    alternatives,
    secrets: ownSecrets([], []),
  });
const role = Buffer.from(chatEvent({ role: 'assistant', content: '' }));
const usage = Buffer.from(usageEvent);
const done = Buffer.from(doneEvent);
const words = Buffer.from(chatEvent({ content: 'words' }));

test('an opening is held back up to 64 KiB, and what is longer counts as content', (t) => {
  const transform = awaiting(chat);
  const fitting = Math.floor((64 * 1024 - 1) / role.length);
  for (let i = 0; i < fitting; i++) t.equal(transform.judge(role), 'silence');
  t.equal(transform.gatheredBytes, fitting * role.length);
  t.equal(transform.judge(role), 'meaningful');
  t.equal(transform.pass(role).toString(), role.toString().repeat(fitting + 1));
  t.equal(transform.gatheredBytes, 0);
  t.end();
});

test('no event of a long opening is searched for content twice', (t) => {
  let judged = 0;
  const counting: StreamRules = {
    ...chat,
    judgeContent: (run) => {
      judged += run.length;
      return chat.judgeContent?.(run) ?? 'meaningful';
    },
  };
  const transform = awaiting(counting);
  for (let i = 0; i < 100; i++) transform.judge(role);
  t.equal(transform.judge(words), 'meaningful');
  t.equal(judged, 100 * role.length + words.length);
  t.equal(transform.pass(words).toString(), role.toString().repeat(100) + words.toString());
  t.end();
});

test('an opening is passed on with the next event once there is no other target', (t) => {
  const alternatives = { mayMoveOn: true };
  const transform = awaiting(chat, alternatives);
  const comment = Buffer.from(': ping\n\n');
  t.equal(transform.judge(comment), 'silence');
  t.equal(transform.judge(role), 'silence');
  alternatives.mayMoveOn = false;
  t.equal(transform.judge(comment), 'meaningful');
  t.equal(transform.pass(comment).toString(), `${comment}${role}${comment}`);
  t.end();
});

test('a stream that ends without content is passed on, unless it has nothing but its end', (t) => {
  for (const mayMoveOn of [true, false]) {
    for (const runs of [[role, done], [Buffer.concat([role, usage, done])], [role, usage, done]]) {
      const transform = awaiting(chat, { mayMoveOn });
      const judged = runs.map((run) => transform.judge(run));
      t.equal(judged.at(-1), 'meaningful');
    }
    t.match(awaiting(chat, { mayMoveOn }).judge(done), { unbegun: true });
  }
  t.end();
});
