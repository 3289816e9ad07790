import { test } from 'tap';
import { startLedger } from '../../support/ledger.js';
import { postJson } from '../../support/post-json.js';
import { jsonAnswer } from '../../support/upstream.js';

test('a count of tokens is not charged as a call, whoever counts them', async (t) => {
  const { upstream, gateway, lines } = await startLedger(t, (kind, ofTarget) => ({
    protocols: ['chat', 'messages', 'responses', 'generateContent'],
    targets: [{ upstream: kind, model: 'm', ...ofTarget, cost: { perCall: 0.5 } }],
    price: { input: 3, perCall: 0.5 },
  }));
  const messages = [{ role: 'user', content: 'hi' }];
  const counts = [
    ['/v1/messages/count_tokens', 'messages', { messages }, { input_tokens: 14 }],
    ['/v1/messages/count_tokens', 'chat', { messages }, {}],
    [
      '/v1/responses/input_tokens',
      'responses',
      { input: 'hi' },
      { object: 'response.input_tokens', input_tokens: 14 },
    ],
  ] as const;
  for (const [index, [path, model, body, answer]] of counts.entries()) {
    upstream.answer = jsonAnswer(200, JSON.stringify(answer));
    const answered = await postJson(
      gateway.url + path,
      { model, ...body },
      { 'anthropic-version': '2023-06-01' },
    );
    t.equal(answered.status, 200, await answered.text());
    const records = await lines(index + 1);
    for (const record of records)
      t.match(record, { outcome: 'complete', units: 0, costNanoUsd: 0, paidNanoUsd: 0 }, `${path} ${model}`);
  }
});
