import { test } from 'tap';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import { type DemoGateway, startGateway } from '../support/gateway.js';
import {
  type Chunk,
  type Client,
  collect,
  createClient,
  raised,
  requestIdOf,
  sdks,
} from '../support/sdks/openai.js';

function asked(content: string) {
  return { model: 'sim-text', messages: [{ role: 'user' as const, content }] };
}

/** Sends what the SDK's types do not allow. */
function send(client: Client, body: object): Promise<unknown> {
  return client.chat.completions.create(body as ReturnType<typeof asked>);
}

/** Paths of all calls so far. */
async function pathsOf(gateway: DemoGateway, client: Client): Promise<readonly unknown[]> {
  const { response } = await client.models.list().withResponse();
  const lines = await gateway.linesUntil(response.headers.get('x-request-id') ?? '');
  return lines.map((line) => line.path).filter((path) => path !== '/v1/models');
}

function withShortDeadlines(config: ResolvedConfig): ResolvedConfig {
  return { ...config, timeouts: { ...config.timeouts, firstByteMs: 1500, idleMs: 1000 } };
}

for (const sdk of sdks) {
  const { module } = sdk;

  test(`${sdk.name}: refusals of the gateway raise the SDK's error classes`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    const client = createClient(sdk, gateway);
    const bad: readonly (readonly [object, string, string | null])[] = [
      [{ ...asked('a'), max_tokens: 'many' }, 'max_tokens', null],
      [{ model: 'sim-text' }, 'messages', 'missing_required_parameter'],
      [{ model: 'sim-text', input: 'a' }, 'input', 'invalid_request_body'],
    ];
    for (const [body, param, code] of bad) {
      const error = await raised(sdk, send(client, body));
      t.ok(error instanceof module.BadRequestError, `${param} is a BadRequestError`);
      t.match(error, { status: 400, type: 'invalid_request_error', param, code });
    }
    for (const apiKey of ['sk-unknown', 'SK-DEMO', 'sk-demo-']) {
      const stranger = createClient(sdk, gateway, { apiKey });
      const error = await raised(sdk, stranger.chat.completions.create(asked('a')));
      t.ok(error instanceof module.AuthenticationError);
      t.match(error, { status: 401, code: 'invalid_api_key' });
    }
    const missing = await raised(sdk, client.chat.completions.create({ ...asked('a'), model: 'nope' }));
    t.ok(missing instanceof module.NotFoundError);
    t.match(missing, { status: 404, code: 'model_not_found', param: 'model', message: /'nope'/ });
    const doubled = createClient(sdk, { ...gateway, url: `${gateway.url}/v1` });
    const lost = await raised(sdk, doubled.chat.completions.create(asked('a')));
    t.ok(lost instanceof module.NotFoundError);
    t.match(lost, { code: 'unknown_url', message: /version twice/ });
    t.equal(gateway.simulator.state().totalRequests, 0, 'none of them has reached the upstream');
  });

  test(`${sdk.name}: a model of another protocol or another group does not exist`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    const trial = createClient(sdk, gateway, { apiKey: 'sk-demo-trial' });
    t.strictSame(
      (await trial.models.list()).data.map((model) => model.id),
      ['sim-text'],
    );
    t.ok((await trial.chat.completions.create(asked('a'))).choices[0]);
    const other = await raised(sdk, trial.models.retrieve('sim-embedding'));
    t.ok(other instanceof module.NotFoundError);
    for (const client of [trial, createClient(sdk, gateway)]) {
      const error = await raised(
        sdk,
        client.chat.completions.create({ ...asked('a'), model: 'sim-embedding' }),
      );
      t.ok(error instanceof module.NotFoundError);
      t.match(error, { code: 'model_not_found', param: 'model' });
    }
  });

  test(`${sdk.name}: an error carries the request id of the answer and of the log`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    let header: string | null = null;
    const client = createClient(sdk, gateway, {
      fetch: async (...given) => {
        const response = await fetch(...given);
        header = response.headers.get('x-request-id');
        return response;
      },
    });
    const calls = [
      () => send(client, { model: 'sim-text' }),
      () => send(client, asked('[[fault:status=503]] a')),
      async () =>
        collect(await client.chat.completions.create({ ...asked('[[fault:close]] a'), stream: true })),
    ];
    for (const [index, call] of calls.entries()) {
      const id = requestIdOf(await raised(sdk, call()));
      t.match(id, /^req_[0-9a-f]+$/);
      t.equal(id, header);
      t.equal((await gateway.linesUntil(id)).at(-1)?.status, [400, 503, 200][index]);
    }
  });

  test(`${sdk.name}: an upstream's own errors keep their class, and its pages their status`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const classes = [
      [400, module.BadRequestError],
      [404, module.NotFoundError],
      [409, module.ConflictError],
      [422, module.UnprocessableEntityError],
      [429, module.RateLimitError],
      [500, module.InternalServerError],
      [503, module.InternalServerError],
    ] as const;
    for (const [status, errorClass] of classes) {
      for (const stream of [false, true]) {
        const error = await raised(sdk, send(client, { ...asked(`[[fault:status=${status}]] a`), stream }));
        t.ok(error instanceof errorClass, `${status}`);
        t.match(error, { status, message: /asked to answer with status/ });
      }
    }
    // They are about the gateway's own key.
    for (const status of [401, 403]) {
      const error = await raised(sdk, send(client, asked(`[[fault:status=${status}]] a`)));
      t.ok(error instanceof module.InternalServerError, `${status}`);
      t.match(error, { status: 502, code: 'upstream_error' });
      t.notMatch((error as Error).message, /asked to answer/, 'in our own words');
    }
    const page = await raised(sdk, client.chat.completions.create(asked('[[fault:status=502 html]] a')));
    t.ok(page instanceof module.InternalServerError);
    t.equal(page.status, 502);
  });

  test(`${sdk.name}: a rate limit is raised at once, or retried when the upstream says`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    const client = createClient(sdk, gateway);
    const limited = await raised(
      sdk,
      client.chat.completions.create(asked('[[fault:status=429 retry-after=7]] a')),
    );
    t.ok(limited instanceof module.RateLimitError);
    t.match(limited, { status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' });
    t.equal(gateway.simulator.state().totalRequests, 1);

    // No other timer of this process waits so long: the SDK can have the number from the header alone.
    const waits: unknown[] = [];
    const { setTimeout: real } = globalThis;
    const recording = ((...given: Parameters<typeof real>) => {
      waits.push(given[1]);
      return real(...given);
    }) as typeof real;
    globalThis.setTimeout = recording;
    t.teardown(() => {
      globalThis.setTimeout = real;
    });
    const patient = createClient(sdk, gateway, { maxRetries: 2 });
    const answer = await patient.chat.completions.create(
      asked('[[fault:status=429 retry-after=0.123 times=1]] a'),
    );
    t.match(answer.choices[0]?.message.content, /^Simulated answer/);
    t.ok(waits.includes(123));
    t.equal(gateway.simulator.state().totalRequests, 3);
    t.equal((await pathsOf(gateway, client)).length, 3, 'the gateway itself has retried nothing');
  });

  test(`${sdk.name}: an endpoint that is not implemented is called once, retries or not`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    const client = createClient(sdk, gateway, { maxRetries: 2 });
    const listed = await raised(sdk, client.files.list());
    t.ok(listed instanceof module.InternalServerError);
    t.match(listed, { status: 501, code: 'not_implemented' });
    const file = new File(['x'.repeat(100_000)], 'a.txt');
    t.equal((await raised(sdk, client.files.create({ file, purpose: 'batch' }))).status, 501);
    t.equal((await raised(sdk, client.files.retrieve('file-1'))).status, 501);
    t.equal((await raised(sdk, client.post('/fine-tunes/ft-1/cancel'))).status, 501);
    t.strictSame(await pathsOf(gateway, client), [
      '/v1/files',
      '/v1/files',
      '/v1/files/file-1',
      '/v1/fine-tunes/ft-1/cancel',
    ]);
    const stranger = createClient(sdk, gateway, { apiKey: 'sk-unknown', maxRetries: 2 });
    t.equal((await raised(sdk, stranger.files.list())).status, 401);
  });

  test(`${sdk.name}: a stream that breaks raises an error after what has come`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator', adapt: withShortDeadlines });
    const client = createClient(sdk, gateway);
    const faults = [
      ['error-event', 'internal_error'],
      ['reset', 'upstream_error'],
      ['truncate', 'upstream_error'],
      ['close', 'upstream_error'],
      ['hang', 'upstream_timeout'],
    ] as const;
    const breaks = faults.flatMap(([fault, code]) =>
      [1, 3].map((after) => ({ name: `${fault} after=${after}`, code, after })),
    );
    await Promise.all(
      breaks.map(async ({ name, code, after }) => {
        const chunks: Chunk[] = [];
        const stream = await client.chat.completions.create({
          ...asked(`[[fault:${name}]] a`),
          stream: true,
        });
        const error = await raised(sdk, collect(stream, chunks));
        t.match(error, { status: undefined, code, type: 'server_error' }, name);
        t.equal(chunks.length, after, name);
      }),
    );
    const { response } = await client.models.list().withResponse();
    const lines = await gateway.linesUntil(response.headers.get('x-request-id') ?? '');
    const broken = lines.filter((line) => line.outcome === 'upstream_error');
    t.equal(broken.length, breaks.length);
    t.ok(broken.every((line) => line.status === 200));
  });

  test(`${sdk.name}: an upstream that fails before its first event raises an error status`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator', adapt: withShortDeadlines }));
    const faults = [
      ['error-event', 502, 'upstream_error'],
      ['reset', 502, 'upstream_error'],
      ['reset after=0', 502, 'upstream_error'],
      ['bad-head', 502, 'upstream_error'],
      ['close after=0', 502, 'upstream_error'],
      ['truncate after=0', 502, 'upstream_error'],
      ['hang', 504, 'upstream_timeout'],
      ['hang after=0', 504, 'upstream_timeout'],
      ['wrong-protocol', 502, 'unsupported_stream_event'],
    ] as const;
    await Promise.all(
      faults.map(async ([fault, status, code]) => {
        const error = await raised(sdk, send(client, { ...asked(`[[fault:${fault}]] a`), stream: true }));
        t.ok(error instanceof module.InternalServerError, fault);
        t.match(error, { status, code, type: 'server_error' }, fault);
      }),
    );
    for (const fault of ['reset', 'reset after=1', 'truncate', 'close', 'short-body', 'bad-head=lengths']) {
      const error = await raised(sdk, client.chat.completions.create(asked(`[[fault:${fault}]] a`)));
      t.match(error, { status: 502, code: 'upstream_error' }, fault);
    }
    const answer = await client.chat.completions.create(asked('after all of it'));
    t.match(answer.choices[0]?.message.content, /after all of it$/);
  });
}
