import { test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { post, textProtocols } from '../../support/translated.js';
import { chunk, doneEvent, lastChunk, startRawUpstream, streamHead } from '../../support/upstream.js';

/** Longer than the second in which a call that broke is sent again. */
const lateMs = 1100;
const messages = [{ role: 'user', content: 'hi' }];
const started = 'data: {"object":"chat.completion.chunk","choices":[]}\n\n';

const streams = {
  'without an event': '',
  'with a comment': ': hello\n\n',
  'with its end mark alone': doneEvent,
};
const calls = {
  'passes as it comes': ['/v1/chat/completions', { model: 'm', stream: true, messages }],
  'is translated': ['/v1/messages', { model: 'm', stream: true, max_tokens: 50, messages }],
} as const;

for (const [how, [path, body]] of Object.entries(calls)) {
  const cases = how === 'is translated' ? { ...streams, 'with a start alone': started } : streams;
  for (const [what, bytes] of Object.entries(cases)) {
    test(`a stream that ${how} and ends ${what} goes to the next target within a second, and to none later`, async (t) => {
      let isLate = false;
      const first = await startRawUpstream(t, ({ socket }) => {
        const end = (bytes === '' ? '' : chunk(bytes)) + lastChunk;
        if (!isLate) socket.write(streamHead + end);
        else setTimeout(() => socket.write(streamHead + end), lateMs);
      });
      const second = await startRawUpstream(t, streamHead + lastChunk);
      const { port } = await startGateway(t, {
        upstreams: [first.url, second.url],
        protocols: textProtocols,
        config: { routing: { failures: 1000, retries: 0 } },
      });
      t.equal((await post(port, path, body)).status, 502);
      t.equal(second.requests.length, 1);
      isLate = true;
      t.equal((await post(port, path, body)).status, 502);
      t.equal(second.requests.length, 1, 'it is not asked again');
    });
  }
}
