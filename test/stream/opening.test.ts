import { test } from 'tap';
import { ownSecrets } from '../../src/config/snapshot.js';
import type { StreamRules } from '../../src/conversation/stream-rules.js';
import { unknownTokens } from '../../src/conversation/usage.js';
import { chat } from '../../src/protocols/chat/index.js';
import { ObservedTransform } from '../../src/stream/observe.js';
import { chatEvent } from '../support/upstream.js';

const awaiting = (rules: StreamRules): ObservedTransform =>
  new ObservedTransform({
    rules,
    hideUsage: false,
    streamsUnasked: false,
    amend: null,
    keep: null,
    inputEstimate: 1,
    tokens: unknownTokens,
    awaitsContent: true,
    secrets: ownSecrets([], []),
  });
const role = Buffer.from(chatEvent({ role: 'assistant', content: '' }));
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
