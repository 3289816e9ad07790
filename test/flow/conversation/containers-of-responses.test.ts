import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { keptIn } from '../../support/conversations.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, testKey } from '../../support/gateway.js';
import { postJson } from '../../support/post-json.js';
import { startRouted } from '../../support/routed.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { chunk, jsonAnswer, lastChunk, type RawRequest, streamHead } from '../../support/upstream.js';

const otherKey = 'sk-other';
const keys = [testKey, otherKey].map((key) => ({ id: key, hash: hashKey(key), groups: ['default'] }));
const code = (container: unknown) => ({ type: 'code_interpreter', container });
const shell = (id?: string) => ({
  type: 'shell',
  environment:
    id === undefined ? { type: 'container_auto' } : { type: 'container_reference', container_id: id },
});

let made = 0;

/** An upstream that runs code in a container: the one that was asked for, or a new one. */
function native({ body, head }: RawRequest): string {
  made += 1;
  if (head.startsWith('GET')) {
    const item = { id: 'ci_1', type: 'code_interpreter_call', container_id: `cntr_${made}` };
    const response = { id: `resp_${made - 1}`, object: 'response', status: 'completed', output: [item] };
    if (head.includes('stream=true'))
      return eventsOf([
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response },
      ]);
    return jsonAnswer(200, JSON.stringify(response));
  }
  const {
    background,
    input,
    tools,
    stream,
    metadata = {},
  } = JSON.parse(body.toString() || '{}') as JsonObject;
  const brought = Array.isArray(input) ? input.flatMap((item) => item?.tools ?? []) : [];
  const [tool] = [...brought, ...((tools ?? []) as JsonObject[])] as {
    type: string;
    container?: unknown;
    environment?: JsonObject;
  }[];
  const asked = tool?.environment?.container_id ?? tool?.container;
  const container = typeof asked === 'string' ? asked : `cntr_${made}`;
  const ran =
    tool?.type === 'shell'
      ? { type: 'shell_call', environment: { type: 'container_reference', container_id: container } }
      : { type: 'code_interpreter_call', container_id: container };
  const item = { id: `ci_${made}`, status: 'completed', ...ran };
  const said = { id: `msg_${made}`, type: 'message', role: 'assistant', content: [] };
  // As long as real ones are: it is not seen at the end alone.
  const text = { type: 'output_text', text: 'a'.repeat(9000), annotations: [] };
  const output = tool === undefined ? [said] : [item, { ...said, content: [text] }];
  const response = { id: `resp_${made}`, object: 'response', status: 'completed', metadata, output };
  if (background === true)
    return jsonAnswer(200, JSON.stringify({ ...response, status: 'queued', output: [] }));
  if (stream !== true) return jsonAnswer(200, JSON.stringify(response));
  const events: JsonObject[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    ...output.map((each, index) => ({ type: 'response.output_item.done', output_index: index, item: each })),
    { type: 'response.completed', response },
  ];
  return eventsOf(events);
}

function eventsOf(events: readonly JsonObject[]): string {
  const written = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  return streamHead + written.map(chunk).join('') + lastChunk;
}

const stage = (t: Test, targets: number) =>
  startRouted(t, Array(targets).fill(native), {
    protocols: ['responses'],
    target: { responses: true },
    config: { ...keptIn(temporaryFolder(t)), keys },
  });

const counting = '/v1/responses/input_tokens';

interface Asked {
  readonly key?: string;
  readonly path?: string;
}

async function ask(
  { url }: RunningGateway,
  body: object | string,
  { key = testKey, path = '/v1/responses' }: Asked = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await postJson(
    url + path,
    typeof body === 'string' ? body : JSON.stringify({ model: 'm', ...body }),
    { authorization: `Bearer ${key}` },
  );
  return { status: answer.status, text: await answer.text() };
}

for (const targets of [1, 2])
  for (const stream of [false, true])
    for (const [name, tool] of [
      ['code', (id?: string) => code(id ?? { type: 'auto' })],
      ['a shell', shell],
    ] as const)
      test(`a container of ${name} at ${targets} target(s) is not found by another key, stream: ${stream}`, async (t) => {
        const { gateway, upstreams, total } = await stage(t, targets);
        const other = { key: otherKey };
        const first = await ask(gateway, { input: 'x', tools: [tool()], stream, store: false });
        t.equal(first.status, 200);
        const id = `cntr_${made}`;
        const named = { input: 'x', tools: [tool(id)], store: false };
        // Nothing waits for the note.
        const stolen = await eventually(async () => {
          const answer = await ask(gateway, named, { ...other, path: counting });
          return answer.status === 200 ? undefined : answer;
        });
        const before = total();
        const item = { type: 'code_interpreter_call', id: 'ci_1', container_id: id, status: 'completed' };
        for (const { status, text } of [
          stolen,
          await ask(gateway, named, other),
          await ask(gateway, { ...named, stream: true }, other),
          // Code goes on in the container of an item in the input.
          await ask(gateway, { input: [item], tools: [code({ type: 'auto' })] }, other),
        ]) {
          t.equal(status, 404);
          t.match(JSON.parse(text), {
            error: {
              message: `Container with id '${id}' not found.`,
              type: 'invalid_request_error',
              param: 'tools',
            },
          });
        }
        const spelled = JSON.stringify({ model: 'm', ...named })
          .replace('code_interpreter', 'code\\u005finterpreter')
          .replace('"shell"', '"\\u0073hell"')
          .replace('cntr_', '\\u0063ntr_');
        t.equal((await ask(gateway, spelled, other)).status, 404, 'however it is spelled');
        t.equal(total(), before, 'no upstream was asked');
        for (let turn = 0; turn < 4; turn += 1) t.equal((await ask(gateway, named)).status, 200);
        const holders = upstreams.filter(({ requests }) =>
          requests.some(({ head, body }) => !head.includes('input_tokens') && body.includes(`"${id}"`)),
        );
        t.equal(holders.length, 1, 'its own key goes on where it is');
        const unknown = { ...named, tools: [tool('cntr_out')] };
        t.equal((await ask(gateway, unknown, other)).status, 200, "the upstream's to judge");
      });

test('what a client has written is no container of its key', async (t) => {
  const { gateway } = await stage(t, 1);
  const other = { key: otherKey };
  await ask(gateway, { input: 'x', tools: [code({ type: 'auto' })] });
  const id = `cntr_${made}`;
  const stolen = { input: 'x', tools: [code(id)] };
  await eventually(async () => (await ask(gateway, stolen, { ...other, path: counting })).status === 404);
  for (const stream of [false, true])
    await ask(
      gateway,
      { input: 'x', tools: [code({ type: 'auto' })], metadata: { container_id: id }, stream },
      other,
    );
  for (let turn = 0; turn < 10; turn += 1) t.equal((await ask(gateway, stolen, other)).status, 404);
});

test('a container is not found by another key whose items bring the tool, or whose input is null', async (t) => {
  const { gateway, total } = await stage(t, 1);
  const other = { key: otherKey };
  await ask(gateway, { input: 'x', tools: [code({ type: 'auto' })] });
  const id = `cntr_${made}`;
  const stolen = { input: 'x', tools: [code(id)] };
  await eventually(async () => (await ask(gateway, stolen, { ...other, path: counting })).status === 404);
  const more = { type: 'additional_tools', role: 'developer', tools: [code(id)] };
  const found = { type: 'tool_search_output', call_id: 'call_1', tools: [shell(id)] };
  const ran = { type: 'code_interpreter_call', id: 'ci_1', container_id: id, status: 'completed' };
  const message = { role: 'user', content: 'x' };
  const long = { role: 'user', content: 'x'.repeat(300_000) };
  const before = total();
  for (const [index, body] of [
    { input: [long, more] },
    { input: [found, ...Array.from({ length: 1000 }, () => ({ ...message, id: `msg_${'1'.repeat(90)}` }))] },
    { input: [ran, long, { ...more, tools: [code({ type: 'auto' })] }] },
    { input: [message, more] },
    { input: ['x', more] },
    { input: [[message], 1, null, {}, more] },
    { input: [more, message], tools: [] },
    { input: [message, found], tools: [{ type: 'tool_search' }] },
    { input: [ran, { ...more, tools: [code({ type: 'auto' })] }] },
    { input: null, prompt: { id: 'pmpt_1' }, tools: [code(id)] },
  ].entries()) {
    t.equal((await ask(gateway, body, other)).status, 404, `body ${index}`);
    t.equal((await ask(gateway, { ...body, input: body.input ?? 'x' })).status, 200, 'its own key goes on');
  }
  const spellings = [
    ['"tools"', '"too\\u006cs"'],
    ['"input"', '"inp\\u0075t"'],
    ['code_interpreter', 'code\\u005finterpreter'],
    [id, id.replace('cntr', '\\u0063ntr')],
  ] as const;
  for (const first of [message, long])
    for (const [from, to] of spellings) {
      const spelled = JSON.stringify({ model: 'm', input: [first, more] }).replace(from, to);
      t.equal((await ask(gateway, spelled, other)).status, 404, `spelled ${to}`);
    }
  t.equal(total() - before, 10, 'no upstream was asked by the other key');
});

test('a container of a tool that an item brings is noted', async (t) => {
  const { gateway } = await stage(t, 1);
  const more = { type: 'additional_tools', role: 'developer', tools: [code({ type: 'auto' })] };
  await ask(gateway, { input: [more, { role: 'user', content: 'x' }] });
  const stolen = { input: 'x', tools: [code(`cntr_${made}`)] };
  await eventually(
    async () => (await ask(gateway, stolen, { key: otherKey, path: counting })).status === 404,
  );
});

test('a request may name as many containers as items', async (t) => {
  const { gateway } = await stage(t, 1);
  const input = Array.from({ length: 5000 }, (_, index) => ({ container_id: `cntr_of_${index}` }));
  const { status, text } = await ask(gateway, { input, tools: [code({ type: 'auto' })] });
  t.equal(status, 400);
  t.match(JSON.parse(text), { error: { type: 'invalid_request_error', param: 'input' } });
});

for (const query of ['', '?stream=true'])
  test(`a container of a response in the background is noted when its key is shown it${query}`, async (t) => {
    const { gateway } = await stage(t, 1);
    const first = await ask(gateway, { input: 'x', tools: [code({ type: 'auto' })], background: true });
    const { id } = JSON.parse(first.text) as { id: string };
    const headers = { authorization: `Bearer ${testKey}` };
    const shown = await fetch(`${gateway.url}/v1/responses/${id}${query}`, { headers });
    t.equal(shown.status, 200);
    const container = /"container_id":"(cntr_\d+)"/.exec(await shown.text())?.[1];
    const stolen = { input: 'x', tools: [code(container)] };
    await eventually(
      async () => (await ask(gateway, stolen, { key: otherKey, path: counting })).status === 404,
    );
  });
