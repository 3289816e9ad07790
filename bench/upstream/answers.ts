/** Events in one streamed answer, as the `sse` work counts them: only chat chunks, without the usage and `[DONE]`. */
export const eventsPerAnswer = 200;

const usage = { prompt_tokens: 220, completion_tokens: eventsPerAnswer, total_tokens: 220 + eventsPerAnswer };

/** Returns the body of a chat completion with usage, 1,024 bytes long. */
export function completionBody(): string {
  const make = (content: string): string =>
    JSON.stringify({
      id: 'chatcmpl-bench00000000000000000000',
      object: 'chat.completion',
      created: 1_760_000_000,
      model: 'bench-model',
      choices: [{ index: 0, message: { role: 'assistant', content }, logprobs: null, finish_reason: 'stop' }],
      usage,
    });
  const sentence = 'The quick brown fox jumps over the lazy dog while the band plays on. ';
  const room = 1024 - Buffer.byteLength(make(''));
  return make(sentence.repeat(20).slice(0, room));
}

/** Returns the SSE text of one chat chunk. */
export function chunkEvent(content: string): string {
  return event({ choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }] });
}

/** Returns the SSE texts of a whole streamed answer in order: the chunks, the usage chunk, `[DONE]`. */
export function streamEvents(): readonly string[] {
  const chunks = Array.from({ length: eventsPerAnswer }, (_, index) => chunkEvent(` word${index}`));
  return [...chunks, event({ choices: [], usage }), 'data: [DONE]\n\n'];
}

function event(fields: object): string {
  const head = {
    id: 'chatcmpl-bench00000000000000000000',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'bench-model',
  };
  return `data: ${JSON.stringify({ ...head, ...fields })}\n\n`;
}

/** Returns one chunk of a chunked body (RFC 9112 section 7.1). */
function httpChunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

/** Returns the bytes of a whole JSON answer, head and body. */
export function jsonAnswer(): Buffer {
  const body = completionBody();
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body);
}

/** Head of a streamed answer with a chunked body. */
const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n';

/** Returns the bytes of a whole streamed answer, with each event in its own HTTP chunk. */
export function streamAnswer(): Buffer {
  return Buffer.from(`${streamHead}${streamEvents().map(httpChunk).join('')}0\r\n\r\n`);
}
