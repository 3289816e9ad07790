import { test } from 'tap';
import { post, startTranslated, textProtocols } from '../../support/translated.js';
import { chunk, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';

const messages = [{ role: 'user', content: 'hi' }];
const clients: Readonly<Record<string, (stream: boolean) => readonly [string, object]>> = {
  chat: (stream) => ['/v1/chat/completions', { model: 'm', stream, messages }],
  responses: (stream) => ['/v1/responses', { model: 'm', stream, input: 'hi' }],
  messages: (stream) => ['/v1/messages', { model: 'm', stream, max_tokens: 50, messages }],
  generateContent: (stream) => [
    `/v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  ],
};
/** How an upstream of a kind says that it has been asked too often. */
const limits: Readonly<Record<string, object>> = {
  chat: { error: { message: 'slow down', type: 'requests', code: 'rate_limit_exceeded' } },
  responses: {
    type: 'error',
    code: 'rate_limit_exceeded',
    message: 'slow down',
    error: { code: 'rate_limit_exceeded', message: 'slow down' },
  },
  messages: { type: 'error', error: { type: 'rate_limit_error', message: 'slow down' } },
  generateContent: { error: { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED' } },
};
const waits = 'retry-after: 7\r\n';

for (const [spoken, limit] of Object.entries(limits)) {
  const json = JSON.stringify(limit);
  const answers = {
    'as a status': jsonAnswer(429, json, waits),
    'in an answer of a good status': jsonAnswer(200, json, waits),
    'in a stream of a good status':
      streamHead.replace('\r\n\r\n', `\r\n${waits}\r\n`) +
      chunk(`event: error\ndata: ${json}\n\n`) +
      lastChunk,
  };
  for (const [how, answer] of Object.entries(answers)) {
    // A whole answer of the client's own protocol passes as it came.
    const asksFor = (client: string): boolean =>
      (how !== 'in an answer of a good status' || client !== spoken) &&
      (spoken !== 'responses' || client === 'responses' || how === 'as a status');
    if (!textProtocols.some(asksFor)) continue;
    test(`an upstream’s own limit, told in ${spoken} ${how}, is the upstream’s and tells when to come again`, async (t) => {
      const { port, lines, line } = await startTranslated(t, {
        kind: spoken === 'responses' ? 'chat' : spoken,
        answer,
        ...(spoken === 'responses' ? { target: { responses: true } } : {}),
        config: { routing: { failures: 1000, retries: 0 } },
      });
      for (const client of textProtocols) {
        if (!asksFor(client)) continue;
        const [path, body] = (clients[client] as (stream: boolean) => readonly [string, object])(
          how.includes('stream'),
        );
        const { status, head } = await post(port, path, body);
        t.equal(status, 429, client);
        t.match(head, /\r\nretry-after: 7/, client);
        t.match(head, /\r\nx-gateway-path: /, client);
      }
      const count = textProtocols.filter(asksFor).length;
      await line(() => lines.filter(({ msg }) => msg === 'request').length === count);
      for (const each of lines) if (each.msg === 'request') t.match(each, { outcome: 'upstream_error' });
    });
  }
}
