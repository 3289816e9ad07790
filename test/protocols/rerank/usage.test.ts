import { test } from 'tap';
import { noCharges } from '../../../src/conversation/stream-rules.js';
import { rerank } from '../../../src/protocols/rerank/index.js';

const inputOf = (answer: object): number | null =>
  rerank.usageOf(Buffer.from(JSON.stringify(answer)))?.input ?? null;

test('the tokens of an answer are those of its usage, or of its meta', async (t) => {
  const results = [{ index: 0, relevance_score: 1 }];
  t.equal(inputOf({ usage: { total_tokens: 7 }, results }), 7);
  t.equal(inputOf({ usage: { prompt_tokens: 9, total_tokens: 7 }, results }), 9);
  t.equal(inputOf({ id: 'a', results, meta: { tokens: { input_tokens: 5, output_tokens: 0 } } }), 5);
  t.equal(inputOf({ results, meta: { billed_units: { search_units: 1 } } }), null);
  t.equal(inputOf({ results }), null);
});

test('a document that is repeated says nothing of what the answer has used', async (t) => {
  const own = { usage: { total_tokens: 0 }, meta: { tokens: { input_tokens: 0 } } };
  const results = [{ index: 0, relevance_score: 1, document: { text: 'x', ...own } }];
  t.equal(inputOf({ usage: { total_tokens: 7 }, results }), 7, 'before the results');
  t.equal(inputOf({ results, usage: { total_tokens: 7 } }), 7, 'behind them');
  t.equal(inputOf({ results, meta: { tokens: { input_tokens: 5 } } }), 5, 'in another member');
  t.equal(inputOf({ results }), null, 'nowhere');
});

test('an answer counts as the search units that it names, as one without any, and as none if it is an error', async (t) => {
  const callsOf = (answer: object): number => {
    const charges = noCharges();
    rerank.noteCharges?.(Buffer.from(JSON.stringify(answer)), charges);
    return charges.calls;
  };
  const results = [{ index: 0, relevance_score: 1 }];
  t.equal(callsOf({ results, meta: { billed_units: { search_units: 3 } } }), 3);
  t.equal(callsOf({ results, usage: { total_tokens: 5 } }), 1);
  t.equal(callsOf({ results, meta: { billed_units: { input_tokens: 5, search_units: 0 } } }), 1, 'of tokens');
  t.equal(callsOf({ object: 'list', data: results, usage: { total_tokens: 5 } }), 1, 'in other words');
  t.equal(callsOf({ error: { message: 'no' }, usage: { total_tokens: 5 } }), 0);
  t.equal(callsOf({ code: 20012, message: 'no', data: null }), 0);
});
