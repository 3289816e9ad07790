import { test } from 'tap';
import type { AnswerContext } from '../../src/conversation/codec.js';
import type { StreamEvent } from '../../src/conversation/events.js';
import { LeftOut } from '../../src/conversation/left-out.js';
import { type TextProtocolName, textProtocols } from '../../src/conversation/request.js';
import { textEndpoints } from '../../src/protocols/text.js';
import type { JsonObject } from '../../src/wire/json.js';
import { parseEvent } from '../../src/wire/sse.js';
import { context as plainContext } from './messages/samples.js';

const codecOf = (protocol: TextProtocolName) => textEndpoints[protocol].translation.codec;

const before = 'Ich suche. ';
const claim = 'Zürich 😀 hat 448 664 Einwohner.';
const text = before + claim;
const query = 'Einwohner Zürich';
const page = { url: 'https://zuerich.example/zahlen', title: 'Zahlen' };
/** Places of the claim: in units of UTF-16, and in bytes. */
const units = { start: before.length, end: text.length };
const bytes = { start: Buffer.byteLength(before), end: Buffer.byteLength(text) };

const urlCitation = { start_index: units.start, end_index: units.end, ...page };
const annotation = { type: 'url_citation', ...urlCitation };
const webSearchCall = {
  type: 'web_search_call',
  id: 'ws_1',
  status: 'completed',
  action: { type: 'search', query, sources: [{ type: 'url', url: page.url }] },
};
const citation = {
  type: 'web_search_result_location',
  ...page,
  encrypted_index: 'eiM=',
  cited_text: 'Die Stadt zählt …',
};
const called = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search' };
const found = {
  type: 'web_search_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: [{ type: 'web_search_result', ...page, encrypted_content: 'ec==', page_age: null }],
};
const grounding = {
  webSearchQueries: [query],
  groundingChunks: [{ web: { uri: page.url, title: page.title } }],
  groundingSupports: [
    { segment: { startIndex: bytes.start, endIndex: bytes.end, text: claim }, groundingChunkIndices: [0] },
  ],
};

/** A whole answer of each upstream in which the claim has a source. */
const answers: Readonly<Record<TextProtocolName, JsonObject>> = {
  chat: {
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text,
          annotations: [{ type: 'url_citation', url_citation: urlCitation }],
        },
        finish_reason: 'stop',
      },
    ],
  },
  responses: {
    status: 'completed',
    output: [
      webSearchCall,
      { type: 'message', content: [{ type: 'output_text', text, annotations: [annotation] }] },
    ],
  },
  messages: {
    content: [
      { type: 'text', text: before },
      { ...called, input: { query } },
      found,
      { type: 'text', text: claim, citations: [citation] },
    ],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 2, server_tool_use: { web_search_requests: 1 } },
  },
  generateContent: {
    candidates: [
      {
        content: { role: 'model', parts: [{ text: before }, { text: claim }] },
        finishReason: 'STOP',
        groundingMetadata: grounding,
      },
    ],
  },
};

const piece = (index: number, delta: JsonObject) => ({ type: 'content_block_delta', index, delta });
const chunk = (delta: JsonObject, finish: string | null = null) => ({
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const block = (candidate: JsonObject) => ({ candidates: [{ index: 0, ...candidate }] });
const at = { output_index: 1, item_id: 'msg_1', content_index: 0 };

/** The same as the data of a stream's events. */
const streams: Readonly<Record<TextProtocolName, readonly (JsonObject | string)[]>> = {
  chat: [
    chunk({ role: 'assistant', content: before }),
    chunk({ content: claim }),
    chunk({ annotations: [{ type: 'url_citation', url_citation: urlCitation }] }),
    chunk({}, 'stop'),
    '[DONE]',
  ],
  responses: [
    { type: 'response.created', response: {} },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...webSearchCall, status: 'in_progress', action: undefined },
    },
    { type: 'response.web_search_call.searching', output_index: 0, item_id: 'ws_1' },
    { type: 'response.output_item.done', output_index: 0, item: webSearchCall },
    {
      type: 'response.output_item.added',
      output_index: 1,
      item: { type: 'message', id: 'msg_1', content: [] },
    },
    { type: 'response.output_text.delta', ...at, delta: before },
    { type: 'response.output_text.delta', ...at, delta: claim },
    { type: 'response.output_text.annotation.added', ...at, annotation_index: 0, annotation },
    { type: 'response.output_text.done', ...at, text },
    { type: 'response.completed', response: { status: 'completed', output: [] } },
  ],
  messages: [
    { type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 0 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    piece(0, { type: 'text_delta', text: before }),
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { ...called, input: {} } },
    piece(1, { type: 'input_json_delta', partial_json: '{"query":"Einw' }),
    piece(1, { type: 'input_json_delta', partial_json: 'ohner Zürich"}' }),
    { type: 'content_block_stop', index: 1 },
    { type: 'content_block_start', index: 2, content_block: found },
    { type: 'content_block_stop', index: 2 },
    { type: 'content_block_start', index: 3, content_block: { type: 'text', text: '', citations: [] } },
    piece(3, { type: 'citations_delta', citation }),
    piece(3, { type: 'text_delta', text: claim }),
    { type: 'content_block_stop', index: 3 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ],
  generateContent: [
    block({ content: { parts: [{ text: before }] } }),
    block({ content: { parts: [{ text: claim }] }, groundingMetadata: grounding }),
    // The vendor has been seen to say it again with the reason.
    block({ content: { parts: [{ text: '' }] }, groundingMetadata: grounding, finishReason: 'STOP' }),
  ],
};

function contextWith(lost: LeftOut): AnswerContext {
  return { ...plainContext, includeUsage: true, searches: true, lost };
}

function whole(from: TextProtocolName, to: TextProtocolName, lost = new LeftOut()): JsonObject {
  const answer = codecOf(from).decodeAnswer(answers[from], { model: 'up', searches: true, lost });
  return JSON.parse(codecOf(to).encodeAnswer(answer, contextWith(lost))) as JsonObject;
}

function eventsOf(from: TextProtocolName, lost = new LeftOut()): StreamEvent[] {
  const decoder = codecOf(from).createDecoder({ model: 'up', searches: true, lost });
  const events: StreamEvent[] = [];
  for (const data of streams[from])
    decoder.decode(null, typeof data === 'string' ? data : JSON.stringify(data), events);
  decoder.finish(events);
  return events;
}

function streamed(from: TextProtocolName, to: TextProtocolName, lost = new LeftOut()): JsonObject[] {
  const encoder = codecOf(to).createEncoder(contextWith(lost));
  const bytes = eventsOf(from, lost)
    .map((event) => encoder.encode(event))
    .join('');
  return bytes
    .split('\n\n')
    .map((each) => parseEvent(`${each}\n\n`).data)
    .filter((data): data is string => data !== null && data !== '[DONE]')
    .map((data) => JSON.parse(data) as JsonObject);
}

test('the events of a stream tell of searches and of sources with their places', async (t) => {
  for (const from of textProtocols) {
    const events = eventsOf(from);
    t.same(
      events.filter(({ kind }) => kind === 'citation'),
      [{ kind: 'citation', choice: 0, citation: { ...units, ...page } }],
      from,
    );
    const searches = events.filter(({ kind }) => kind === 'search');
    const title = from === 'responses' ? '' : page.title;
    const search = { kind: 'search', choice: 0, query, results: [{ ...page, title }] };
    t.same(searches, from === 'chat' ? [] : [search], from);
    t.equal(events.at(-1)?.kind, 'end', from);
  }
});

test('a chat client reads annotations', async (t) => {
  for (const from of textProtocols) {
    const lost = new LeftOut();
    const expected = [{ type: 'url_citation', url_citation: urlCitation }];
    t.match(whole(from, 'chat', lost), { choices: [{ message: { content: text, annotations: expected } }] });
    const chunks = streamed(from, 'chat');
    t.match(
      chunks.filter((each) => JSON.stringify(each).includes('annotations')),
      [{ choices: [{ delta: { annotations: expected } }] }],
      from,
    );
    t.strictSame(lost.names, from === 'chat' ? [] : ['web_search_call'], from);
  }
});

test('a responses client reads items of searches and annotations', async (t) => {
  const item = {
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query, queries: [query], sources: [{ type: 'url', url: page.url }] },
  };
  for (const from of textProtocols) {
    const { output } = whole(from, 'responses') as { output: JsonObject[] };
    const searches = output.filter(({ type }) => type === 'web_search_call');
    t.match(searches, from === 'chat' ? [] : [item], from);
    const texts = output.flatMap(({ content }) => (content ?? []) as JsonObject[]);
    const cited = texts.find(({ annotations }) => (annotations as unknown[]).length > 0);
    const { text: said, annotations } = cited as { text: string; annotations: (typeof annotation)[] };
    t.equal(said.slice(annotations[0]?.start_index, annotations[0]?.end_index), claim, from);

    const events = streamed(from, 'responses');
    const types = events.map(({ type }) => type);
    if (from !== 'chat') {
      const first = types.indexOf('response.web_search_call.in_progress');
      t.strictSame(types.slice(first - 1, first + 4), [
        'response.output_item.added',
        'response.web_search_call.in_progress',
        'response.web_search_call.searching',
        'response.web_search_call.completed',
        'response.output_item.done',
      ]);
    }
    t.match(
      events.filter(({ type }) => type === 'response.output_text.annotation.added'),
      [{ annotation_index: 0, annotation: { type: 'url_citation', ...page } }],
      from,
    );
    const { response } = events.at(-1) as { response: { output: JsonObject[] } };
    t.match(
      response.output.filter(({ type }) => type === 'web_search_call'),
      from === 'chat' ? [] : [{ status: 'completed', action: { query } }],
    );
    const numbers = events.map(({ sequence_number: number }) => number);
    t.strictSame(
      numbers,
      numbers.map((_, index) => index),
    );
  }
});

test('a messages client reads blocks of searches, and citations on texts', async (t) => {
  for (const from of textProtocols) {
    const message = whole(from, 'messages') as { content: JsonObject[]; usage: JsonObject };
    const types = message.content.map(({ type }) => type);
    const use = message.content.find(({ type }) => type === 'server_tool_use');
    const result = message.content.find(({ type }) => type === 'web_search_tool_result');
    if (from === 'chat') t.strictSame(types, ['text']);
    else {
      t.match(use, { name: 'web_search', input: { query }, id: /^srvtoolu_/ });
      t.equal(result?.tool_use_id, use?.id);
      t.match(result?.content, [{ type: 'web_search_result', url: page.url, title: String }]);
      t.match(message.usage.server_tool_use, { web_search_requests: 1, web_fetch_requests: 0 });
    }
    const cited = message.content.find(({ citations }) => citations !== undefined);
    t.match(cited, { citations: [{ type: 'web_search_result_location', ...page, cited_text: '' }] }, from);

    const events = streamed(from, 'messages');
    const deltas = events.filter(
      ({ delta }) => (delta as JsonObject | undefined)?.type === 'citations_delta',
    );
    t.match(deltas, [{ delta: { citation: { type: 'web_search_result_location', ...page } } }], from);
    const opened = events.filter(({ type }) => type === 'content_block_start');
    t.strictSame(
      opened.map(({ index }) => index),
      opened.map((_, index) => index),
      from,
    );
    t.equal(opened.length, events.filter(({ type }) => type === 'content_block_stop').length);
    const usage = events.find(({ type }) => type === 'message_delta')?.usage as JsonObject;
    if (from !== 'chat') t.match(usage.server_tool_use, { web_search_requests: 1 }, from);
  }
});

test('a generateContent client reads the grounding, with places in bytes', async (t) => {
  for (const from of textProtocols) {
    const { candidates } = whole(from, 'generateContent') as { candidates: JsonObject[] };
    const last = streamed(from, 'generateContent').at(-1) as { candidates: JsonObject[] };
    for (const candidate of [candidates[0], last.candidates[0]]) {
      t.match(
        candidate?.groundingMetadata,
        {
          webSearchQueries: from === 'chat' ? [] : [query],
          groundingChunks: [{ web: { uri: page.url, title: page.title } }],
          groundingSupports: [
            {
              segment: { startIndex: bytes.start, endIndex: bytes.end, text: claim },
              groundingChunkIndices: [0],
            },
          ],
        },
        from,
      );
    }
    // Clients that take the places for places in all of the text find the claim as well.
    t.match(candidates[0]?.content, { parts: [{ text }] });
  }
});

test('raw texts count for places as others do', async (t) => {
  const encoder = codecOf('generateContent').createEncoder(contextWith(new LeftOut()));
  encoder.encode({ kind: 'start', usage: null });
  encoder.encode({ kind: 'text', choice: 0, text: before });
  const raw = Buffer.from(JSON.stringify(claim).slice(1, -1)).toString('latin1');
  t.type(encoder.encodeRawText(raw), 'string');
  encoder.encode({ kind: 'citation', choice: 0, citation: { ...units, ...page } });
  encoder.encode({ kind: 'finish', choice: 0, reason: 'stop', stopSequence: null });
  t.match(encoder.encode({ kind: 'end' }), `"startIndex":${bytes.start},"endIndex":${bytes.end}`);
});

test('what an upstream tells of its search may have any shape', async (t) => {
  const decode = (from: TextProtocolName, body: JsonObject) =>
    codecOf(from).decodeAnswer(body, { model: 'up', searches: true }).choices[0]?.parts;
  const strange = [null, 5, 'x', [], {}, { web: 5 }, { web: { uri: 5 } }];
  const grounded = (groundingMetadata: unknown) =>
    decode('generateContent', {
      candidates: [{ content: { parts: [{ text: 'a' }] }, finishReason: 'STOP', groundingMetadata }],
    });
  for (const each of strange) {
    t.match(grounded(each), [{ kind: 'text', text: 'a' }]);
    t.match(
      grounded({
        webSearchQueries: each,
        groundingChunks: [each],
        groundingSupports: [each, { segment: each, groundingChunkIndices: [0, 7, each] }],
      }),
      [{ kind: 'text', text: 'a' }],
    );
    t.match(
      decode('messages', {
        content: [
          { type: 'server_tool_use', id: each, name: 'web_search', input: each },
          { type: 'web_search_tool_result', tool_use_id: each, content: each },
          { type: 'text', text: 'a', citations: [each, { type: 'web_search_result_location', url: each }] },
        ],
      })?.at(-1),
      { kind: 'text', text: 'a' },
    );
    const call = { type: 'web_search_call', action: { type: 'search', query: each, sources: [each] } };
    t.match(decode('responses', { output: [call] }), [{ kind: 'search', results: [] }]);
  }
  const far = { segment: { startIndex: 1e9, endIndex: 2e9, partIndex: 9 }, groundingChunkIndices: [0] };
  t.match(grounded({ groundingChunks: grounding.groundingChunks, groundingSupports: [far] }), [
    { kind: 'text', text: 'a' },
    { kind: 'search' },
  ]);
});

test('places in a part are places in the text behind the parts before it', async (t) => {
  const claimed = { startIndex: 0, endIndex: Buffer.byteLength(claim), partIndex: 2 };
  const body = {
    candidates: [
      {
        content: { parts: [{ text: 'hm', thought: true }, { text: before }, { text: claim }] },
        finishReason: 'STOP',
        groundingMetadata: {
          ...grounding,
          groundingSupports: [{ segment: claimed, groundingChunkIndices: [0] }],
        },
      },
    ],
  };
  const answer = codecOf('generateContent').decodeAnswer(body, { model: 'up', searches: true });
  t.match(answer.choices[0]?.parts, [
    { kind: 'reasoning' },
    { kind: 'text', text, citations: [{ ...units, ...page }] },
    { kind: 'search', query },
  ]);
});
