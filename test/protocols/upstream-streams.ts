import type { TextProtocolName } from '../../src/conversation/request.js';

/** What an upstream sends: objects, or the text of an event's data. */
type Event = object | string;

/** What the answers say, with characters of one to four bytes and those that JSON escapes. */
export const spoken = 'Grüße aus Ōsaka 🌍: „schön“,\n\t\\ and "done".';
export const thought = 'Überlegen … 🤔 天気';
/** Arguments of their two calls. */
export const inputs = ['{"city":"Zürich 東京 🗼","days":2}', '{"zone":"ä\\"\\n"}'] as const;

const spokenPieces = pieces(spoken, 7);
const thoughtPieces = pieces(thought, 8);

/** Cuts a text into pieces of so many characters. */
function pieces(text: string, size: number): string[] {
  const characters = [...text];
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, index) =>
    characters.slice(index * size, (index + 1) * size).join(''),
  );
}

/** The data of an event as some upstreams write it: in ASCII alone. */
function ascii(event: object): string {
  return JSON.stringify(event).replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function chatEvents(): Event[] {
  const chunk = (rest: object): object => ({
    id: 'c1',
    object: 'chat.completion.chunk',
    model: 'u',
    ...rest,
  });
  const delta = (delta: object, finish_reason: string | null = null): object =>
    chunk({ choices: [{ index: 0, delta, finish_reason }] });
  const call = (index: number, rest: object): object => delta({ tool_calls: [{ index, ...rest }] });
  const opened = (index: number, name: string): object =>
    call(index, { id: `call_${index}`, type: 'function', function: { name, arguments: '' } });
  const [first, second] = inputs.map((input) => pieces(input, 13));
  return [
    delta({ role: 'assistant', content: '' }),
    ...thoughtPieces.map((reasoning_content) => delta({ reasoning_content })),
    ...spokenPieces.map((content, index) => (index === 2 ? ascii(delta({ content })) : delta({ content }))),
    opened(0, 'get_weather'),
    opened(1, 'get_time'),
    // The calls take turns.
    ...(first ?? []).flatMap((piece, index) => [
      call(0, { function: { arguments: piece } }),
      ...(second?.[index] === undefined ? [] : [call(1, { function: { arguments: second[index] } })]),
    ]),
    delta({}, 'tool_calls'),
    chunk({
      choices: [],
      usage: { prompt_tokens: 11, completion_tokens: 22, total_tokens: 33 },
    }),
    '[DONE]',
  ];
}

function messagesEvents(): Event[] {
  const event = (type: string, rest: object = {}): object => ({ type, ...rest });
  const delta = (index: number, delta: object): object => event('content_block_delta', { index, delta });
  const block = (index: number, content_block: object, deltas: readonly Event[]): Event[] => [
    event('content_block_start', { index, content_block }),
    ...deltas,
    event('content_block_stop', { index }),
  ];
  const call = (index: number, name: string, input: string): Event[] =>
    block(
      index,
      { type: 'tool_use', id: `toolu_${index}`, name, input: {} },
      pieces(input, 13).map((partial_json) => delta(index, { type: 'input_json_delta', partial_json })),
    );
  const text = (text: string): object => delta(1, { type: 'text_delta', text });
  return [
    event('message_start', {
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'u',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 7, cache_read_input_tokens: 4, output_tokens: 1 },
      },
    }),
    event('ping'),
    ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
      ...thoughtPieces.map((thinking) => delta(0, { type: 'thinking_delta', thinking })),
      delta(0, { type: 'signature_delta', signature: 'c2ln+/A=' }),
    ]),
    ...block(
      1,
      { type: 'text', text: '' },
      spokenPieces.map((piece, index) => (index === 2 ? ascii(text(piece)) : text(piece))),
    ),
    ...call(2, 'get_weather', inputs[0]),
    ...call(3, 'get_time', inputs[1]),
    event('message_delta', {
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { output_tokens: 22 },
    }),
    event('message_stop'),
  ];
}

function responsesEvents(): Event[] {
  const reasoning = {
    id: 'rs_1',
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: thought }],
    encrypted_content: 'c2ln+/A=',
  };
  const part = { type: 'output_text', text: spoken, annotations: [], logprobs: [] };
  const message = { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant', content: [part] };
  const call = (index: number, name: string, input: string) => ({
    id: `fc_${index}`,
    type: 'function_call',
    status: 'completed',
    call_id: `call_${index}`,
    name,
    arguments: input,
  });
  const calls = [call(0, 'get_weather', inputs[0]), call(1, 'get_time', inputs[1])];
  const response = (status: string, rest: object = {}): object => ({
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'u',
    status,
    output: [],
    usage: null,
    ...rest,
  });
  const delta = (type: string, output_index: number, delta: string): object => ({
    type: `response.${type}.delta`,
    output_index,
    content_index: 0,
    summary_index: 0,
    delta,
  });
  const text = (piece: string): object => delta('output_text', 1, piece);
  const added = (output_index: number, item: object): object => ({
    type: 'response.output_item.added',
    output_index,
    item,
  });
  const done = (output_index: number, item: object): object => ({
    type: 'response.output_item.done',
    output_index,
    item,
  });
  return [
    { type: 'response.created', response: response('in_progress') },
    added(0, { ...reasoning, summary: [], encrypted_content: '' }),
    ...thoughtPieces.map((piece) => delta('reasoning_summary_text', 0, piece)),
    done(0, reasoning),
    added(1, { ...message, status: 'in_progress', content: [] }),
    ...spokenPieces.map((piece, index) => (index === 2 ? ascii(text(piece)) : text(piece))),
    { type: 'response.output_text.done', output_index: 1, content_index: 0, text: spoken },
    done(1, message),
    ...calls.flatMap((item, index) => [
      added(index + 2, { ...item, status: 'in_progress', arguments: '' }),
      ...pieces(item.arguments, 13).map((piece) => delta('function_call_arguments', index + 2, piece)),
      done(index + 2, item),
    ]),
    {
      type: 'response.completed',
      response: response('completed', {
        output: [reasoning, message, ...calls],
        usage: { input_tokens: 11, output_tokens: 22, total_tokens: 33 },
      }),
    },
  ];
}

function generateContentEvents(): Event[] {
  const block = (part: object, rest: object = {}): object => ({
    candidates: [{ content: { role: 'model', parts: [part] }, ...rest, index: 0 }],
    usageMetadata: { promptTokenCount: 11, totalTokenCount: 11 },
    modelVersion: 'u',
    responseId: 'r1',
  });
  const calls = ['get_weather', 'get_time'].map((name, index) => ({
    functionCall: { id: `x${index}`, name, args: JSON.parse(inputs[index] ?? '') as object },
    ...(index === 0 ? { thoughtSignature: 'c2ln+/A=' } : {}),
  }));
  return [
    ...thoughtPieces.map((text) => block({ text, thought: true })),
    ...spokenPieces.map((text, index) => (index === 2 ? ascii(block({ text })) : block({ text }))),
    block(calls[0] ?? {}),
    {
      ...block({}),
      candidates: [{ content: { role: 'model', parts: calls.slice(1) }, finishReason: 'STOP', index: 0 }],
      usageMetadata: {
        promptTokenCount: 11,
        candidatesTokenCount: 15,
        thoughtsTokenCount: 7,
        totalTokenCount: 33,
      },
    },
  ];
}

/** The events of an answer with reasoning that is signed, a text and two calls, by the upstream's protocol. */
export const answers: Readonly<Record<TextProtocolName, readonly Event[]>> = {
  chat: chatEvents(),
  messages: messagesEvents(),
  responses: responsesEvents(),
  generateContent: generateContentEvents(),
};

/** The event with which an upstream says in the middle of a stream that it has failed. */
export const failures: Readonly<Record<TextProtocolName, object>> = {
  chat: { error: { message: 'überlastet', type: 'server_error', code: null } },
  messages: { type: 'error', error: { type: 'overloaded_error', message: 'überlastet' } },
  responses: {
    type: 'response.failed',
    response: { id: 'resp_1', status: 'failed', error: { code: 'server_error', message: 'überlastet' } },
  },
  generateContent: { error: { code: 503, message: 'überlastet', status: 'UNAVAILABLE' } },
};

/** Server-sent events as an upstream of the protocol words them: with the type as their name where they have one. */
export function streamOf(events: readonly Event[]): string {
  return events
    .map((event) => {
      const data = typeof event === 'string' ? event : JSON.stringify(event);
      const type = /^\{"type":"([\w.]+)"/.exec(data)?.[1];
      return `${type === undefined ? '' : `event: ${type}\n`}data: ${data}\n\n`;
    })
    .join('');
}

/** The same events with what the specification of event streams allows besides: comments, other fields, a byte order mark. */
export function decorated(stream: string): string {
  let count = 0;
  return `\uFEFF: ready ✓\n\n${stream.replaceAll(/^data: (.*)\n\n/gm, (event, data: string) => {
    count += 1;
    if (count % 3 === 0) return `: früh\nid: 7\ndata:${data}\nretry: 1\n\n`;
    return count % 3 === 1 ? `${event}: alive\n\n` : event;
  })}`;
}
