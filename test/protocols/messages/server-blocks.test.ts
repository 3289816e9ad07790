import { test } from 'tap';
import type { JsonObject } from '../../../src/wire/json.js';
import { decode } from './samples.js';

const text = (text: string) => ({ kind: 'text', text });
const word = { type: 'text', text: 'a' };
const ofAssistant = (...content: object[]): JsonObject => ({ messages: [{ role: 'assistant', content }] });
const ofUser = (...content: object[]): JsonObject => ({ messages: [{ role: 'user', content }] });

function partsIn(body: JsonObject): unknown {
  const [turn] = decode(body).turns;
  return turn !== undefined && 'parts' in turn ? turn.parts : null;
}

const serverUse = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } };
const found = (title: unknown, url: unknown) => ({
  type: 'web_search_result',
  title,
  url,
  encrypted_content: 'sealed',
  page_age: '1 day',
});
const search = (content: unknown) => ({ type: 'web_search_tool_result', tool_use_id: 's', content });

test('blocks of tools that the vendor runs are left out and named', async (t) => {
  const types = [
    'advisor_tool_result',
    'bash_code_execution_tool_result',
    'code_execution_tool_result',
    'container_upload',
    'fallback',
    'mcp_tool_result',
    'mcp_tool_use',
    'server_tool_use',
    'text_editor_code_execution_tool_result',
    'tool_search_tool_result',
    'web_fetch_tool_result',
  ];
  for (const type of types) {
    const block = { type, id: 's', tool_use_id: 's', content: { type: 'x', text: 'y' } };
    for (const body of [ofAssistant(word, block), ofUser(word, block)]) {
      t.same(partsIn(body), [text('a')], type);
      t.same(decode(body).leftOut, [type]);
    }
  }
});

test('a block of an unknown type is left out under a name of ours', async (t) => {
  const secret = { type: 'of-the-client', data: 'x', cache_control: { type: 'ephemeral' } };
  for (const body of [ofAssistant(word, secret), ofUser(word, secret)]) {
    t.same(partsIn(body), [text('a')]);
    t.same(decode(body).leftOut, ['content']);
  }
  const systems = decode({ system: [secret, { type: 'text', text: 'rule' }] });
  t.same(systems.system, ['rule']);
  t.same(systems.leftOut, ['content']);
});

test('a compaction is a text where it stands', async (t) => {
  const body = ofAssistant({ type: 'compaction', content: 'so far' }, word);
  t.same(partsIn(body), [text('so far'), text('\n\na')]);
  t.same(decode(body).leftOut, []);
  for (const content of [null, ' ', 5]) {
    const failed = ofAssistant(word, { type: 'compaction', content });
    t.same(partsIn(failed), [text('a')]);
    t.same(decode(failed).leftOut, ['compaction']);
  }
});

test('what a search found is a list of titles and addresses', async (t) => {
  const results = [found('One', 'https://one'), found(null, 'https://two'), found('Three', 3), found(4, ' ')];
  const body = ofAssistant(word, serverUse, search([...results, 5]), word);
  t.same(partsIn(body), [
    text('a'),
    text('\n\nWeb search results:\n- One: https://one\n- https://two\n- Three'),
    text('\n\na'),
  ]);
  t.same(decode(body).leftOut, ['server_tool_use', 'encrypted_content', 'page_age']);
});

test('a search lists twenty results and says that there were more', async (t) => {
  const many = Array.from({ length: 21 }, (_, index) => found(`t${index}`, `https://x/${index}`));
  const [part] = partsIn(ofAssistant(search(many))) as { readonly text: string }[];
  t.equal(part?.text.split('\n').length, 21);
  t.notMatch(part?.text, /t20/);
  t.match(decode(ofAssistant(search(many))).leftOut, ['web_search_tool_result']);
  t.notMatch(decode(ofAssistant(search(many.slice(1)))).leftOut, ['web_search_tool_result']);
});

test('a search that failed or found nothing is left out', async (t) => {
  for (const content of [[], { type: 'web_search_tool_result_error', error_code: 'x' }, null]) {
    t.same(partsIn(ofAssistant(word, search(content))), [text('a')]);
    t.same(decode(ofAssistant(word, search(content))).leftOut, ['web_search_tool_result']);
  }
});

test('a reference to a tool is a text with its name', async (t) => {
  const result = (...content: object[]) => ofUser({ type: 'tool_result', tool_use_id: 'c', content });
  const body = result({ type: 'tool_reference', tool_name: 'get_weather' }, { type: 'newer' });
  t.match(partsIn(body), [{ kind: 'toolResult', content: [text('Found tool: get_weather')] }]);
  t.same(decode(body).leftOut, ['content']);
  const nameless = result({ type: 'tool_reference' });
  t.match(partsIn(nameless), [{ kind: 'toolResult', content: [] }]);
  t.same(decode(nameless).leftOut, ['tool_reference']);
});

test('texts on both sides of a block that was left out stay apart', async (t) => {
  t.same(partsIn(ofAssistant(word, serverUse, word, word)), [text('a'), text('\n\na'), text('a')]);
});

test('a message of which nothing is left is none of the assistant, and a note of the user', async (t) => {
  const { turns } = decode({
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [serverUse] },
      { role: 'system', content: [{ type: 'newer' }] },
      { role: 'user', content: [{ type: 'container_upload', file_id: 'f' }] },
    ],
  });
  t.same(turns, [
    { role: 'user', parts: [text('hi')] },
    { role: 'user', parts: [text('(The content of this message was left out.)')] },
  ]);
});
