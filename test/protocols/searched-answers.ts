import type { TextProtocolName } from '../../src/conversation/request.js';
import type { JsonObject } from '../../src/wire/json.js';

/*
 * What an upstream of each protocol answers after it has searched the web: two sentences, the second of which has a source.
 */

export const before = 'Ich suche. ';
/** The first sentence as streams have it: those of one form pass undecoded where nobody needs them. */
const pieces = ['Ich', ' su', 'che', '. '];
export const claim = 'Zürich 😀 hat 448 664 Einwohner.';
export const text = before + claim;
export const query = 'Einwohner Zürich';
export const page = { url: 'https://zuerich.example/zahlen', title: 'Zahlen' };
/** Places of the claim: in units of UTF-16, and in bytes. */
export const units = { start: before.length, end: text.length };
export const bytes = { start: Buffer.byteLength(before), end: Buffer.byteLength(text) };

export const urlCitation = { start_index: units.start, end_index: units.end, ...page };
export const annotation = { type: 'url_citation', ...urlCitation };
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
export const grounding = {
  webSearchQueries: [query],
  groundingChunks: [{ web: { uri: page.url, title: page.title } }],
  groundingSupports: [
    { segment: { startIndex: bytes.start, endIndex: bytes.end, text: claim }, groundingChunkIndices: [0] },
  ],
};

/** A whole answer of each upstream in which the claim has a source. */
export const answers: Readonly<Record<TextProtocolName, JsonObject>> = {
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
export const streams: Readonly<Record<TextProtocolName, readonly (JsonObject | string)[]>> = {
  chat: [
    chunk({ role: 'assistant', content: '' }),
    ...pieces.map((content) => chunk({ content })),
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
    ...pieces.map((delta) => ({ type: 'response.output_text.delta', ...at, delta })),
    { type: 'response.output_text.delta', ...at, delta: claim },
    { type: 'response.output_text.annotation.added', ...at, annotation_index: 0, annotation },
    { type: 'response.output_text.done', ...at, text },
    { type: 'response.completed', response: { status: 'completed', output: [] } },
  ],
  messages: [
    { type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 0 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...pieces.map((each) => piece(0, { type: 'text_delta', text: each })),
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
    ...pieces.map((each) => block({ content: { parts: [{ text: each }] } })),
    block({ content: { parts: [{ text: claim }] }, groundingMetadata: grounding }),
    // The vendor has been seen to say it again with the reason.
    block({ content: { parts: [{ text: '' }] }, groundingMetadata: grounding, finishReason: 'STOP' }),
  ],
};
