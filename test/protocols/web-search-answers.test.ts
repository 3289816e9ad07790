import { test } from 'tap';
import type { StreamEvent } from '../../src/conversation/answer.js';
import type { AnswerContext } from '../../src/conversation/codec.js';
import { LeftOut } from '../../src/conversation/left-out.js';
import { type TextProtocolName, textProtocols } from '../../src/conversation/request.js';
import { decodeCitations } from '../../src/protocols/chat/annotations.js';
import { lastUsage } from '../../src/protocols/messages/answer/usage.js';
import { citationOf } from '../../src/protocols/responses/answer/decode.js';
import { textEndpoints } from '../../src/protocols/text.js';
import type { JsonObject } from '../../src/wire/json.js';
import { parseEvent } from '../../src/wire/sse.js';
import { plainSource } from '../conversation/plain.js';
import { context as plainContext } from './messages/samples.js';
import {
  type annotation,
  answers,
  before,
  bytes,
  claim,
  grounding,
  page,
  query,
  streams,
  text,
  units,
  urlCitation,
} from './searched-answers.js';

const codecOf = (protocol: TextProtocolName) => textEndpoints[protocol].translation.codec;

function contextWith(lost: LeftOut): AnswerContext {
  return { ...plainContext, includeUsage: true, searches: true, lost };
}

function whole(from: TextProtocolName, to: TextProtocolName, lost = new LeftOut()): JsonObject {
  const answer = codecOf(from).decodeAnswer(answers[from], {
    ...plainSource,
    model: 'up',
    searches: true,
    lost,
  });
  return JSON.parse(codecOf(to).encodeAnswer(answer, contextWith(lost))) as JsonObject;
}

function eventsOf(from: TextProtocolName, lost = new LeftOut()): StreamEvent[] {
  const decoder = codecOf(from).createDecoder({ ...plainSource, model: 'up', searches: true, lost });
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

test('places that are not whole are floored, and none is before its text', async (t) => {
  const places = { start_index: 1.7, end_index: 4.2 };
  const before = { start_index: -3, end_index: -0.5 };
  const cited = (place: object) => ({ type: 'url_citation', url: 'https://x/', ...place });
  t.match(citationOf(cited(places)), { start: 1, end: 4 });
  t.match(citationOf(cited(before)), { start: 0, end: 0 });
  t.match(decodeCitations([{ type: 'url_citation', url_citation: cited(places) }]), [{ start: 1, end: 4 }]);
  t.match(decodeCitations([{ type: 'url_citation', url_citation: cited(before) }]), [{ start: 0, end: 0 }]);
  const answer = codecOf('generateContent').decodeAnswer(
    {
      candidates: [
        {
          content: { parts: [{ text: 'one two' }] },
          finishReason: 'STOP',
          groundingMetadata: {
            groundingChunks: [{ web: { uri: 'https://x/' } }],
            groundingSupports: [{ segment: { startIndex: 0.5, endIndex: 3.9 }, groundingChunkIndices: [0] }],
          },
        },
      ],
    },
    { ...plainSource, model: 'up', searches: true },
  );
  t.match(JSON.stringify(answer), '"start":0,"end":3');
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

test('a messages client is told how many searches the upstream counts', async (t) => {
  const answered = { type: 'message', content: [{ type: 'output_text', text: 'a', annotations: [] }] };
  const twoQueries = {
    type: 'web_search_call',
    id: 'ws_1',
    status: 'completed',
    action: { type: 'search', queries: ['a', 'b'] },
  };
  const opened = { type: 'web_search_call', id: 'ws_2', action: { type: 'open_page', url: 'https://x/' } };
  const output = [twoQueries, opened, { ...twoQueries, id: 'ws_3' }, answered];
  const tokens = { input_tokens: 1, output_tokens: 2 };
  const response = { status: 'completed', output, usage: tokens };
  const responseEvents = [
    ...output.map((item, index) => ({ type: 'response.output_item.done', output_index: index, item })),
    { type: 'response.completed', response },
  ];
  const candidate = {
    content: { role: 'model', parts: [{ text: 'a' }] },
    finishReason: 'STOP',
    groundingMetadata: { webSearchQueries: ['a', 'b', 'c'] },
  };
  const grounded = {
    candidates: [candidate],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2 },
  };
  const counted = { ...tokens, server_tool_use: { web_search_requests: 5 } };
  const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: counted };
  const cases = [
    { from: 'responses', answer: response, events: responseEvents, told: 2 },
    { from: 'generateContent', answer: grounded, events: [grounded], told: 3 },
    {
      from: 'messages',
      answer: { content: [{ type: 'text', text: 'a' }], stop_reason: 'end_turn', usage: counted },
      events: [{ type: 'message_start', message: { usage: tokens } }, end, { type: 'message_stop' }],
      told: 5,
    },
  ] as const;
  const source = { ...plainSource, model: 'up', searches: true };
  for (const { from, answer, events, told } of cases) {
    const expected = { ...tokens, server_tool_use: { web_search_requests: told } };
    const decoded = codecOf(from).decodeAnswer(answer, source);
    t.equal(decoded.usage?.searches, told, from);
    const message = JSON.parse(
      codecOf('messages').encodeAnswer(decoded, contextWith(new LeftOut())),
    ) as JsonObject;
    t.match(message, { usage: expected }, from);
    const decoder = codecOf(from).createDecoder(source);
    const read: StreamEvent[] = [];
    for (const event of events) decoder.decode(null, JSON.stringify(event), read);
    decoder.finish(read);
    const encoder = codecOf('messages').createEncoder(contextWith(new LeftOut()));
    const written = read.map((event) => encoder.encode(event)).join('');
    t.match(written, JSON.stringify(expected).slice(0, -2), from);
  }
});

test('searches are counted in the bytes of a message that passes untouched, and in its stream', async (t) => {
  const tokens = { input_tokens: 1, output_tokens: 2 };
  const usage = { ...tokens, server_tool_use: { web_search_requests: 4, web_fetch_requests: 1 } };
  t.equal(lastUsage(Buffer.from(JSON.stringify({ type: 'message', usage })))?.searches, 4);
  const start = lastUsage(Buffer.from(JSON.stringify({ type: 'message_start', message: { usage } })));
  t.equal(lastUsage(Buffer.from(JSON.stringify({ usage: { output_tokens: 9 } })), start)?.searches, 4);
  t.notOk('searches' in (lastUsage(Buffer.from(JSON.stringify({ usage: tokens }))) ?? {}));
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
    codecOf(from).decodeAnswer(body, { ...plainSource, model: 'up', searches: true }).choices[0]?.parts;
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
  const answer = codecOf('generateContent').decodeAnswer(body, {
    ...plainSource,
    model: 'up',
    searches: true,
  });
  t.match(answer.choices[0]?.parts, [
    { kind: 'reasoning' },
    { kind: 'text', text, citations: [{ ...units, ...page }] },
    { kind: 'search', query },
  ]);
});

test('words that stand elsewhere than is claimed are found, long ones too', async (t) => {
  const long = 'a'.repeat(4000);
  const cited = (text: string, words: readonly string[]) => {
    const groundingSupports = words.map((each, index) => ({
      segment: { startIndex: index, endIndex: index + 1, text: each },
      groundingChunkIndices: [0],
    }));
    const { choices } = codecOf('generateContent').decodeAnswer(
      {
        candidates: [
          {
            content: { parts: [{ text }] },
            finishReason: 'STOP',
            groundingMetadata: { ...grounding, groundingSupports },
          },
        ],
      },
      { ...plainSource, model: 'up', searches: true },
    );
    const [part] = choices[0]?.parts ?? [];
    return part?.kind === 'text' ? part.citations?.map(({ start, end }) => [start, end]) : null;
  };
  t.strictSame(cited(`x${long}b${long}y`, [`${long}b${long}`, `y${long}`]), [
    [1, 8002],
    [1, 2],
  ]);
  // An engine that looks for each of these at every place of the text takes a second for it.
  const unfound = Array.from({ length: 1000 }, () => `${long}b${long}`);
  t.strictSame(cited(long.repeat(50), unfound)?.at(-1), [999, 1000]);
});

test('what an answer loses is told by name', async (t) => {
  const lostOf = (from: TextProtocolName, to: TextProtocolName, body: JsonObject) => {
    const lost = new LeftOut();
    const answer = codecOf(from).decodeAnswer(body, { ...plainSource, model: 'up', searches: false, lost });
    codecOf(to).encodeAnswer(answer, contextWith(lost));
    return lost.names;
  };
  const stopped = { stop_reason: 'stop_sequence', stop_sequence: 'X' };
  t.strictSame(
    lostOf('messages', 'chat', {
      content: [
        { type: 'thinking', thinking: 'hm', signature: 's' },
        { type: 'server_tool_use', id: 'a', name: 'code_execution', input: {} },
        { type: 'code_execution_tool_result', tool_use_id: 'a', content: {} },
        { type: 'invented' },
        { type: 'text', text: 'a', citations: [{ type: 'char_location' }] },
      ],
      ...stopped,
    }),
    ['server_tool_use', 'code_execution_tool_result', 'content', 'citations', 'stop_sequence', 'signature'],
  );
  for (const to of ['responses', 'generateContent'] as const)
    t.strictSame(lostOf('messages', to, { content: [{ type: 'text', text: 'a' }], ...stopped }), [
      'stop_sequence',
    ]);
  t.strictSame(
    lostOf('responses', 'messages', {
      output: [
        { type: 'file_search_call', id: 'fs_1' },
        { type: 'invented' },
        {
          type: 'message',
          content: [
            {
              type: 'output_text',
              text: 'a',
              annotations: [{ type: 'file_citation' }],
              logprobs: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }],
            },
          ],
        },
      ],
    }),
    ['file_search_call', 'output', 'annotations', 'logprobs'],
  );
  t.strictSame(
    lostOf('generateContent', 'chat', {
      candidates: [
        {
          content: { parts: [{ text: 'a' }, { inlineData: {} }, { executableCode: {} }] },
          finishReason: 'STOP',
          groundingMetadata: { ...grounding, groundingChunks: [{ maps: {} }] },
        },
      ],
    }),
    ['inlineData', 'executableCode', 'groundingChunks', 'web_search_call'],
  );
});
