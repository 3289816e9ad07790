import { test } from 'tap';
import { noCharges } from '../../../src/conversation/stream-rules.js';
import { noteCharges } from '../../../src/protocols/responses/charges.js';

const event = (type: string, more: object) =>
  Buffer.from(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
const search = { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'a' } };
const response = (billed: number, output: readonly object[]) => ({
  response: { output, service_tier: 'default', tool_usage: { web_search: { num_requests: billed } } },
});
const created = event('response.created', response(0, []));
const found = event('response.output_item.done', { item: search });
const completed = event('response.completed', response(1, [search, search]));

test('searches are counted until the end says how many are billed, in whatever pieces a stream comes', async (t) => {
  const searchesOf = (...runs: readonly (readonly Buffer[])[]): number => {
    const charges = noCharges();
    for (const run of runs) noteCharges(Buffer.concat(run), charges);
    return charges.searches;
  };
  t.equal(searchesOf([created], [found], [found]), 2, 'a stream that breaks off');
  t.equal(searchesOf([created, found, found]), 2, 'the same at once');
  t.equal(searchesOf([created, found], [found]), 2);
  t.equal(searchesOf([created], [found], [found], [completed]), 1);
  t.equal(searchesOf([created, found, found, completed]), 1);
});

test('searches among the items are charged if the usage of tools is zero', async (t) => {
  const charges = noCharges();
  noteCharges(Buffer.from(JSON.stringify(response(0, [search, search]).response)), charges);
  t.equal(charges.searches, 2);
  const streamed = noCharges();
  for (const run of [created, found, event('response.completed', response(0, [search]))])
    noteCharges(run, streamed);
  t.equal(streamed.searches, 1);
});

test('a whole answer that says how many searches are billed has no others', async (t) => {
  const charges = noCharges();
  noteCharges(Buffer.from(JSON.stringify(response(1, [search, search]).response)), charges);
  t.equal(charges.searches, 1);
});
