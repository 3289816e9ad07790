import { once } from 'node:events';
import { setTimeout as after } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { WebSocketServer } from 'ws';
import { surfaceFault } from '../../src/errors.js';
import { SocketCalls } from '../../src/upstream/socket-calls.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { mediaConfig } from '../support/media/gateway.js';
import { inputBody } from '../support/media/images.js';
import { postJson } from '../support/post-json.js';
import { completion, jsonAnswer, type RawRequest, startRawUpstream } from '../support/upstream.js';
import { Call, get, makeClient, onRequests, rawServer, unhurried } from '../upstream/raw.js';
import { dialer, socketRequest, socketServer } from '../upstream/socket-peers.js';

/** What a balancer takes to cut a silent call, here. */
const cutMs = 1100;
const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** Answers the first request of the first connection, and ends the connection when the second one has come. */
const cutting = (t: Test, seen: string[], waitMs: number) =>
  rawServer(t, (socket, index) => {
    let served = 0;
    onRequests(socket, (text) => {
      seen.push(text.split(' ', 1)[0] as string);
      if (index > 0 || served++ === 0) socket.write(ok);
      else if (waitMs === 0) socket.end();
      else setTimeout(() => socket.end(), waitMs);
    });
  });

test('a silent call that is cut after a while on a kept connection reaches the upstream once', async (t) => {
  const client = makeClient(t);
  const seen: string[] = [];
  const server = await cutting(t, seen, cutMs);
  await new Call(client, server.origin, get('/', 'POST')).over;
  const call = await new Call(client, server.origin, get('/', 'POST')).over;
  t.match(call.failure, { reason: 'reset', bytesSent: true, headSeen: false });
  t.ok((call.failure?.sentMs ?? 0) >= 1000);
  t.strictSame(seen, ['POST', 'POST']);
  t.equal(server.sockets.length, 1);
});

test('a creation on a kept connection that is closed at once reaches the upstream once; another call is resent', async (t) => {
  for (const isOnce of [true, false]) {
    const client = makeClient(t);
    const seen: string[] = [];
    const server = await cutting(t, seen, 0);
    const request = { ...get('/', 'POST'), hasEffects: () => isOnce };
    await new Call(client, server.origin, request).over;
    const call = await new Call(client, server.origin, request).over;
    t.equal(call.failure?.reason ?? null, isOnce ? 'reset' : null);
    t.equal(seen.length, isOnce ? 2 : 3);
  }
});

test('a creation whose kept connection had ended before it was written goes to a fresh one', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket, index) =>
    onRequests(socket, () => {
      socket.write(ok);
      if (index === 0) setImmediate(() => socket.write('HTTP/1.1 408 Request Timeout\r\n\r\n'));
    }),
  );
  const request = { ...get('/', 'POST'), hasEffects: () => true };
  // Whether what follows the answer is seen before, within or after the second call depends on the kernel's timing.
  for (let round = 0; round < 20; round++) {
    await new Call(client, server.origin, request).over;
    const call = await new Call(client, server.origin, request).over;
    t.not(call.head?.status, 408);
    if (call.failure !== null) t.equal(call.failure.bytesSent, true);
  }
});

test('a message that is cut after a while on a kept socket is not sent again, nor one that is stored', async (t) => {
  for (const [waitMs, isOnce, due] of [
    [cutMs, false, 1],
    [0, true, 1],
    [0, false, 2],
  ] as const) {
    let asked = 0;
    const { origin, peers } = await socketServer(t, (socket) =>
      socket.on('message', (data) => {
        if (data.toString() === 'first') socket.send('last');
        else if (++asked > 1) socket.send('last');
        else if (waitMs === 0) socket.terminate();
        else setTimeout(() => socket.terminate(), waitMs);
      }),
    );
    const judge = (): 'last' => 'last';
    const refusal = () => ({ status: 500, body: Buffer.alloc(0) });
    const hold = () => true;
    const calls = new SocketCalls(socketRequest(origin), dialer, { judge, refusal, hold });
    t.teardown(() => calls.close());
    const send = async (text: string) => {
      const heard: { reason: string; isOver: boolean } = { reason: '', isOver: false };
      calls.send(
        Buffer.from(text),
        () => isOnce,
        unhurried,
        {
          onHead: () => {},
          onData: () => true,
          onFault: (_where, fault) => surfaceFault(fault),
          onEnd: () => {
            heard.isOver = true;
          },
          onFailure: ({ reason, bytesSent, sentMs }) => {
            t.ok(bytesSent);
            t.ok(sentMs >= (waitMs === 0 ? 0 : 1000));
            heard.reason = reason;
            heard.isOver = true;
          },
        },
        () => {},
      );
      await eventually(() => heard.isOver);
      return heard.reason;
    };
    t.equal(await send('first'), '');
    t.equal(await send('second'), due === 1 ? 'reset' : '');
    t.equal(asked, due);
    t.equal(peers.length, due);
  }
});

test('what was sent before its kept socket closed counts as sent when no new one opens', async (t) => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.on('connection', (socket) =>
    socket.on('message', (data) => {
      if (data.toString() === 'first') socket.send('last');
      else {
        server.close();
        socket.terminate();
      }
    }),
  );
  const { origin } = await rawServer(t, () => {});
  const refusal = () => ({ status: 500, body: Buffer.alloc(0) });
  const calls = new SocketCalls(socketRequest({ ...origin, port }), dialer, {
    judge: () => 'last',
    refusal,
    hold: () => true,
  });
  t.teardown(() => calls.close());
  const failures: unknown[] = [];
  let ended = 0;
  for (const text of ['first', 'second']) {
    const before = ended;
    calls.send(
      Buffer.from(text),
      () => false,
      unhurried,
      {
        onHead: () => {},
        onData: () => true,
        onFault: (_where, fault) => surfaceFault(fault),
        onEnd: () => {
          ended++;
        },
        onFailure: (failure) => {
          failures.push(failure);
          ended++;
        },
      },
      () => {},
    );
    await eventually(() => ended > before);
  }
  t.match(failures, [{ reason: 'connect_failed', bytesSent: true }]);
});

type Answering = (request: RawRequest) => void;

/** A gateway whose models have two targets, of which the second one answers well. */
async function startPair(t: Test, first: Answering) {
  const drawn = jsonAnswer(200, '{"created":5,"data":[{"url":"https://x.example/i.png"}]}');
  const made = jsonAnswer(200, '{"id":"resp_1","object":"response","status":"completed","output":[]}');
  const video = jsonAnswer(200, '{"id":"theirs","object":"video","status":"queued","progress":0}');
  const second: Answering = ({ head, socket }) => {
    const isText = head.includes('/chat/completions');
    const answer = head.includes(':generateContent')
      ? jsonAnswer(
          200,
          '{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}]}',
        )
      : head.includes('/images/')
        ? drawn
        : head.includes('/videos')
          ? video
          : isText
            ? jsonAnswer(200, completion)
            : made;
    socket.write(answer);
  };
  const upstreams = [await startRawUpstream(t, first), await startRawUpstream(t, second)];
  const targets = upstreams.map((_, priority) => ({ upstream: `u${priority}`, priority }));
  const gemini = targets.map(({ priority }) => ({ upstream: `g${priority}`, priority }));
  const native = targets.map((target) => ({ ...target, responses: true }));
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(
        upstreams.flatMap(({ url }, i) => [
          [`u${i}`, { baseUrl: url }],
          [`g${i}`, { kind: 'generateContent', baseUrl: url }],
        ]),
      ),
      models: {
        c: { protocols: ['chat'], targets },
        i: { protocols: ['images'], targets },
        v: { protocols: ['video'], targets },
        r: { protocols: ['responses'], targets: native },
        h: { protocols: ['chat', 'responses'], hedgeMs: 20, targets: native },
        g: { protocols: ['generateContent'], targets: gemini },
        t: { protocols: ['chat', 'generateContent'], targets: gemini },
        hg: { protocols: ['generateContent'], hedgeMs: 20, targets: gemini },
      },
      config: { routing: { failures: 1000, failureRate: 1 } },
    }),
  });
  const post = async (path: string, body: object): Promise<number> => {
    const answer = await postJson(gateway.url + path, body);
    await answer.arrayBuffer();
    return answer.status;
  };
  return { post, counts: () => upstreams.map(({ requests }) => requests.length) };
}

const chat = { model: 'c', messages: [{ role: 'user', content: 'hi' }] };
const responses = { model: 'r', input: 'hi' };
const generate = '/v1beta/models/g:generateContent';
const asked = { contents: [{ role: 'user', parts: [{ text: 'a fox' }] }] };
const reset: Answering = ({ socket }) => void socket.resetAndDestroy();

/** What asks for an image in a protocol of texts, and whether it does. */
const images: readonly (readonly [string, object, boolean])[] = [
  [generate, asked, false],
  [generate, { ...asked, store: true }, true],
  [generate, { ...asked, generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } }, true],
  [generate, { ...asked, generation_config: { response_modalities: ['Image'] } }, true],
  [generate, { ...asked, generationConfig: { response_modalities: ['IMAGE'] } }, true],
  [generate, { ...asked, generationConfig: { responseModalities: ['AUDIO'] } }, false],
  ['/v1/chat/completions', { ...chat, modalities: ['image', 'text'] }, true],
  ['/v1/chat/completions', { ...chat, modalities: ['text', 'audio'] }, false],
  ['/v1/responses', { ...responses, store: false, tools: [{ type: 'image_generation' }] }, true],
  ['/v1/responses', { ...responses, store: false, tools: [{ type: 'web_search' }] }, false],
];

test('a call that broke more than a second after it was sent goes to no other target', async (t) => {
  const endings: readonly Answering[] = [
    reset,
    ({ socket }) => void socket.end('HTTP/1.1 200 OK\r\ncontent-ty'),
    ({ socket }) =>
      void socket.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{'),
  ];
  await Promise.all(
    endings.map(async (end) => {
      const late = await startPair(t, (request) => void after(cutMs).then(() => end(request)));
      t.equal(await late.post('/v1/chat/completions', chat), 502);
      t.strictSame(late.counts(), [1, 0]);
      const soon = await startPair(t, end);
      t.equal(await soon.post('/v1/chat/completions', chat), 200);
      t.strictSame(soon.counts(), [1, 1]);
    }),
  );
});

test('a stream that ends before its first event goes to another target within a second alone, translated or not', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';
  const native = { ...chat, stream: true };
  const cases: readonly (readonly [string, object])[] = [
    ['/v1/chat/completions', native],
    ['/v1/chat/completions', { ...native, model: 't' }],
  ];
  await Promise.all(
    cases.map(async ([path, body]) => {
      for (const waitMs of [0, cutMs]) {
        const { post, counts } = await startPair(t, ({ socket }) => {
          socket.write(head);
          void after(waitMs).then(() => socket.end());
        });
        // The other target answers with JSON, which is handed on where it is of the client's protocol.
        t.equal(await post(path, body), waitMs === 0 && body === native ? 200 : 502);
        t.strictSame(counts(), waitMs === 0 ? [1, 1] : [1, 0]);
      }
    }),
  );
});

test('an error that comes late still goes to the next target, but for creations', async (t) => {
  const late: Answering = ({ socket }) =>
    void after(cutMs).then(() => socket.write(jsonAnswer(503, '{"error":{"message":"busy"}}')));
  const { post, counts } = await startPair(t, late);
  t.equal(await post('/v1/chat/completions', chat), 200);
  t.strictSame(counts(), [1, 1]);
  t.equal(await post('/v1/images/generations', { model: 'i', prompt: 'a fox' }), 503);
  t.equal(await post('/v1/videos', { model: 'v', prompt: 'a fox' }), 503);
  t.strictSame(counts(), [3, 1]);
});

test('what is made or kept goes on only after an answer that proves that it was not', async (t) => {
  const cases: readonly (readonly [string, object, boolean])[] = [
    ['/v1/images/generations', { model: 'i', prompt: 'a fox' }, true],
    ['/v1/responses', responses, true],
    ['/v1/responses', { ...responses, store: false }, false],
    ['/v1/chat/completions', { ...chat, store: true }, true],
    ['/v1/chat/completions', chat, false],
    ...images,
  ];
  let given = 502;
  const { post, counts } = await startPair(t, ({ socket }) =>
    socket.write(jsonAnswer(given, '{"error":{"message":"busy"}}')),
  );
  for (const [path, body, isOnce] of cases) {
    for (const [status, proves] of [
      [500, false],
      [502, false],
      [504, false],
      [408, false],
      [503, true],
    ] as const) {
      given = status;
      const before = counts();
      const name = `${path} ${JSON.stringify(body)} ${status}`;
      t.equal(await post(path, body), isOnce && !proves ? status : 200, name);
      t.equal((counts()[1] ?? 0) - (before[1] ?? 0), isOnce && !proves ? 0 : 1, name);
    }
  }
});

test('creations and stored responses whose connection breaks at once are asked for once', async (t) => {
  const cases: readonly (readonly [string, object, boolean])[] = [
    ['/v1/images/generations', { model: 'i', prompt: 'a fox' }, true],
    ['/v1/images/generations', { model: 'i', prompt: 'a fox', response_format: 'url' }, true],
    ['/v1/images/generations', inputBody('i', [{ text: 'a fox' }]), true],
    ['/v1/videos', { model: 'v', prompt: 'a fox' }, true],
    ['/v1/responses', responses, true],
    ['/v1/responses', { ...responses, store: true }, true],
    ['/v1/responses', { ...responses, store: null }, true],
    ['/v1/responses', { ...responses, store: false, background: true }, true],
    ['/v1/responses', { ...responses, store: false }, false],
    ['/v1/chat/completions', { ...chat, store: true }, true],
    ['/v1/chat/completions', { ...chat, store: false }, false],
    ['/v1/chat/completions', { ...chat, metadata: { store: 'true' } }, false],
    ...images,
    [generate, { ...asked, generationConfig: { responseFormat: { image: {} } } }, true],
    [generate, { ...asked, generation_config: { response_format: [{ text: {} }, { image: {} }] } }, true],
    [generate, { ...asked, generationConfig: { responseFormat: { text: {} } } }, false],
  ];
  let keeps = false;
  const { post, counts } = await startPair(t, (request) => {
    // What is answered leaves a connection that is kept.
    if (keeps) request.socket.write(jsonAnswer(400, '{"error":{"message":"no"}}'));
    else reset(request);
  });
  for (const [path, body, isOnce] of cases) {
    for (const isKept of [false, true]) {
      if (isKept) {
        keeps = true;
        t.equal(await post(path, body), 400);
        keeps = false;
      }
      const name = `${path} ${JSON.stringify(body)} ${isKept ? 'kept' : 'fresh'}`;
      const before = counts();
      const status = await post(path, body);
      const [first = 0, second = 0] = counts().map((count, i) => count - (before[i] ?? 0));
      t.equal(status, isOnce ? 502 : 200, name);
      t.equal(second, isOnce ? 0 : 1, name);
      t.equal(first, isOnce || !isKept ? 1 : 2, name);
    }
  }
});

test('a stored response is not sent to two targets at once, one that is not stored is', async (t) => {
  let isSentTwice = false;
  const slow: Answering = async ({ socket }) => {
    if (isSentTwice) await eventually(() => counts()[1] === 1);
    else await after(200);
    socket.write(jsonAnswer(200, '{"id":"resp_1","object":"response","status":"completed","output":[]}'));
  };
  const { post, counts } = await startPair(t, slow);
  t.equal(await post('/v1/responses', { ...responses, model: 'h' }), 200);
  t.strictSame(counts(), [1, 0]);
  isSentTwice = true;
  t.equal(await post('/v1/responses', { ...responses, model: 'h', store: false }), 200);
  t.strictSame(counts(), [2, 1]);
  isSentTwice = false;
  const hedged = '/v1beta/models/hg:generateContent';
  const drawing = { ...asked, generationConfig: { responseModalities: ['IMAGE'] } };
  t.equal(await post(hedged, drawing), 200);
  t.strictSame(counts(), [3, 1]);
  t.equal(await post('/v1/chat/completions', { ...chat, model: 'h', modalities: ['image'] }), 200);
  t.strictSame(counts(), [4, 1]);
});
