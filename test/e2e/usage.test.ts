import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Test, test } from 'tap';
import { simulate } from '../support/simulator.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import {
  chatBody,
  startUsageGateway,
  type UsageGateway,
  type UsageGatewayOptions,
} from '../support/usage-gateway.js';

async function start(t: Test, options: Partial<UsageGatewayOptions> = {}): Promise<UsageGateway> {
  const simulator = await simulate(t, { tokensPerSecond: 0 });
  const folder = temporaryFolder(t);
  return startUsageGateway(t, {
    upstreamUrl: simulator.url,
    store: { kind: 'embedded', path: folder },
    ...options,
  });
}

const idOf = (response: Response): string | null => response.headers.get('x-request-id');
/** Nano-dollars. */
const talkCost = (input: number, output: number): number => Math.round(input * 1250 + output * 10_000);

interface ChatAnswer {
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
}

test('calls have lines and sums with the tokens of their answers and what these cost', async (t) => {
  const usage = await start(t);
  const { post } = usage;

  const chat = await post('/v1/chat/completions', chatBody('How are you?'));
  const { usage: told } = (await chat.json()) as ChatAnswer;
  const [chatLine] = await usage.linesOf(idOf(chat));
  const chatCost = talkCost(told.prompt_tokens, told.completion_tokens);
  t.match(chatLine, {
    keyId: 'load',
    groups: ['load'],
    protocol: 'chat',
    model: 'talk',
    target: 'studio/sim-text',
    status: 200,
    outcome: 'complete',
    tokensKnown: 'exact',
    inputTokens: told.prompt_tokens,
    outputTokens: told.completion_tokens,
    costNanoUsd: chatCost,
    retries: 0,
  });
  t.ok(chatCost > 0);

  // The client does not ask for the usage, and the gateway does.
  const stream = await post('/v1/chat/completions', chatBody('How are you?', { stream: true }));
  await stream.text();
  const body = { model: 'talk', max_tokens: 50, messages: [{ role: 'user', content: 'How are you?' }] };
  const translated = await post('/v1/messages', body);
  const { usage: ofMessages } = (await translated.json()) as {
    usage: { input_tokens: number; output_tokens: number };
  };
  const embedded = await post('/v1/embeddings', { model: 'vectors', input: ['one text', 'another'] });
  const { usage: ofVectors } = (await embedded.json()) as ChatAnswer;
  const refused = await post('/v1/chat/completions', { ...chatBody('x'), model: 'vectors' });
  t.equal(refused.status, 404);
  const failed = await post('/v1/chat/completions', chatBody('[[fault:status=400]] x'));
  t.equal(failed.status, 400);
  await failed.text();
  const unknown = await post('/v1/chat/completions', { ...chatBody('x'), model: 'nowhere' });
  t.equal(unknown.status, 404);
  t.equal((await fetch(`${usage.gateway.baseUrl}/v1/models`)).status, 401);

  const [streamLine, messagesLine, vectorsLine, failedLine] = await usage.linesOf(
    idOf(stream),
    idOf(translated),
    idOf(embedded),
    idOf(failed),
  );
  t.match(streamLine, {
    tokensKnown: 'exact',
    inputTokens: told.prompt_tokens,
    outputTokens: told.completion_tokens,
    costNanoUsd: chatCost,
  });
  const messagesCost = talkCost(ofMessages.input_tokens, ofMessages.output_tokens);
  t.match(messagesLine, {
    protocol: 'messages',
    tokensKnown: 'exact',
    inputTokens: ofMessages.input_tokens,
    outputTokens: ofMessages.output_tokens,
    costNanoUsd: messagesCost,
  });
  t.match(vectorsLine, {
    protocol: 'embeddings',
    inputTokens: ofVectors.prompt_tokens,
    outputTokens: 0,
    costNanoUsd: ofVectors.prompt_tokens * 20,
  });
  t.match(failedLine, { status: 400, outcome: 'upstream_error', tokensKnown: 'none', costNanoUsd: 0 });
  t.equal((await usage.lines()).length, 5, 'whoever names no model of the key has no line');

  const { rows, total, complete } = await usage.report('?by=model,key');
  t.ok(complete);
  t.match(rows, [
    {
      model: 'talk',
      key: 'load',
      calls: 4,
      upstreamErrors: 1,
      inexact: 0,
      inputTokens: 2 * told.prompt_tokens + ofMessages.input_tokens,
      outputTokens: 2 * told.completion_tokens + ofMessages.output_tokens,
      costNanoUsd: 2 * chatCost + messagesCost,
    },
    { model: 'vectors', key: 'load', calls: 1, costNanoUsd: ofVectors.prompt_tokens * 20 },
  ]);
  t.equal(total.calls, 5);
  t.equal(total.costUsd, total.costNanoUsd / 1e9);
});

test('images, seconds and tasks have their prices, and polls have no lines', async (t) => {
  const usage = await start(t);
  const { post } = usage;
  const images = await post('/v1/images/generations', {
    model: 'pictures',
    prompt: 'a fox',
    n: 2,
    size: '64x64',
    response_format: 'b64_json',
  });
  t.equal(images.status, 200);
  await images.arrayBuffer();
  const speech = await post('/v1/audio/speech', {
    model: 'voice',
    input: 'Some words.',
    voice: 'alloy',
    response_format: 'wav',
  });
  const sound = Buffer.from(await speech.arrayBuffer());
  const seconds = (sound.length - 44) / sound.readUInt32LE(28);
  const task = await post('/v1/videos', { model: 'm', prompt: 'a fox', seconds: '4', size: '64x48' });
  const { id } = (await task.json()) as { id: string };
  const headers = { authorization: 'Bearer sk-load' };
  const poll = await fetch(`${usage.gateway.baseUrl}/v1/videos/${id}`, { headers });
  t.equal(poll.status, 200);

  const films = { model: 'm', seconds: '4', size: '64x48' };
  const refused = await post('/v1/videos', { ...films, prompt: '[[fault:status=400]] a fox' });
  t.equal(refused.status, 400);
  await refused.text();

  const [ofImages, ofSpeech, ofTask, ofRefused] = await usage.linesOf(
    idOf(images),
    idOf(speech),
    idOf(task),
    idOf(refused),
  );
  t.equal(ofImages?.costNanoUsd, 80_000_000);
  t.ok(seconds > 0);
  t.equal(ofSpeech?.mediaSeconds, seconds);
  t.equal(ofSpeech?.costNanoUsd, Math.round(seconds * 1000) * 6000);
  t.match(ofTask, { mediaSeconds: 4, costNanoUsd: 410_000_000, protocol: 'video' });
  t.match(ofRefused, { status: 400, mediaSeconds: 0, costNanoUsd: 0 });
  t.equal((await usage.lines()).length, 4);
});

test('usage is exported as lines and tables, by time, key and model', async (t) => {
  const usage = await start(t);
  const first = await usage.post('/v1/chat/completions', chatBody('one'));
  await first.text();
  const second = await usage.post('/v1/chat/completions', { ...chatBody('two'), model: 'free' });
  await second.text();
  const [one, two] = await usage.linesOf(idOf(first), idOf(second));
  t.equal(two?.costNanoUsd, 0);
  t.strictSame(await usage.lines('?model=free'), [two]);
  t.strictSame(await usage.lines('?key=other'), []);
  t.strictSame(await usage.lines(`?from=${two?.at}&model=free&key=load`), [two]);
  t.strictSame(await usage.lines(`?to=${one?.at}`), []);

  const exported = await usage.admin('/usage/lines?format=csv');
  t.match(exported.headers.get('content-type'), /^text\/csv/);
  const [header, ...records] = (await exported.text()).trimEnd().split('\r\n');
  t.match(header, /^at,requestId,keyId,/);
  t.equal(records.length, 2);
  t.match(records[0], `${one?.at},${one?.requestId},load,load,chat,talk`);

  const table = await usage.admin('/usage?by=day,model&format=csv');
  t.equal(table.headers.get('x-usage-complete'), 'true');
  const [names, ofFree, ofTalk] = (await table.text()).split('\r\n');
  t.match(
    names,
    /^day,model,calls,.*,cacheWrittenHourTokens,searches,.*,mediaSeconds,costUsd,videoInputTokens,characters$/,
  );
  const day = one?.at.slice(0, 10);
  t.match(ofFree, new RegExp(`^${day},free,1,`));
  t.match(ofTalk, new RegExp(`^${day},talk,1,`));
  t.match(await usage.report(`?from=${day}&to=${day}&by=`), { from: day, to: day, rows: [{ calls: 2 }] });
  t.match(await usage.report('?from=2026-01-01&to=2026-01-31'), { rows: [], total: { calls: 0 } });

  for (const [path, param] of [
    ['/usage?from=yesterday', 'from'],
    ['/usage?to=2026-02-30', 'to'],
    ['/usage?from=2026-03-02&to=2026-03-01', 'from'],
    ['/usage?by=hour', 'by'],
    ['/usage?by=day,day', 'by'],
    ['/usage?format=xml', 'format'],
    ['/usage?model=a&model=b', 'model'],
    ['/usage?until=2026-03-01', 'until'],
    ['/usage/lines?by=day', 'by'],
    ['/usage/lines?from=2026-03-01T25:00:00Z', 'from'],
    ['/usage/lines?from=2026-02-30T00:00:00Z', 'from'],
    ['/usage/lines?format=json', 'format'],
  ] as const) {
    const refused = await usage.admin(path);
    t.equal(refused.status, 400, path);
    t.match(await refused.json(), { error: { param } }, path);
  }
  t.equal((await fetch(`${usage.adminUrl}/usage`)).status, 401);
});

test('the ledger holds the calls of all workers', async (t) => {
  const usage = await start(t, { workers: 3 });
  const ids: (string | null)[] = [];
  const client = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) {
      const answer = await usage.post('/v1/chat/completions', chatBody('x'));
      await answer.text();
      ids.push(idOf(answer));
    }
  };
  await Promise.all(Array.from({ length: 6 }, client));
  const lines = await usage.linesOf(...ids);
  const { total } = await usage.report('?by=');
  t.equal(total.calls, 120);
  t.equal(
    total.costNanoUsd,
    lines.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0),
  );
});

test('a ledger that is off has no lines, and looking at it makes no files', async (t) => {
  const usage = await start(t, {
    config: { usage: { ledger: false } },
    store: { kind: 'embedded', path: './none' },
  });
  const answer = await usage.post('/v1/embeddings', { model: 'vectors', input: 'x' });
  t.equal(answer.status, 200);
  await answer.text();
  t.strictSame(await usage.lines(), []);
  t.match(await usage.report(), { rows: [], total: { calls: 0 }, complete: true });
  t.notOk(existsSync(join(dirname(usage.gateway.configPath ?? ''), 'none')));
});
