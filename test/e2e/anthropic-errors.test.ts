import { test } from 'tap';
import { type ServedBy, startGateway } from '../support/gateway.js';
import { type Client, createClient, raised, sdks, textOf } from '../support/sdks/anthropic.js';
import { skipWaits } from '../support/sdks/skip-waits.js';

const kinds: readonly ServedBy[] = ['simulator', 'chat', 'generateContent'];

function asked(content: string) {
  return { model: 'sim-text', max_tokens: 100, messages: [{ role: 'user' as const, content }] };
}

/** Sends what the SDK's types do not allow. */
function send(client: Client, body: object): Promise<unknown> {
  return client.messages.create(body as ReturnType<typeof asked>);
}

for (const sdk of sdks) {
  const { module } = sdk;

  test(`${sdk.name}: refusals of the gateway raise the SDK's error classes`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    const client = createClient(sdk, gateway);
    const bad: readonly (readonly [object, RegExp])[] = [
      [{ max_tokens: 5, messages: asked('a').messages }, /model/],
      [{ model: 'sim-text', max_tokens: 5 }, /messages/],
      [{ ...asked('a'), max_tokens: 'many' }, /max_tokens/],
    ];
    for (const [body, message] of bad) {
      const error = await raised(sdk, send(client, body));
      t.ok(error instanceof module.BadRequestError, `${message}`);
      t.match(error, {
        status: 400,
        type: 'invalid_request_error',
        error: { type: 'error', error: { type: 'invalid_request_error', message } },
      });
    }
    const stranger = createClient(sdk, gateway, { apiKey: 'sk-unknown' });
    const unknown = await raised(sdk, send(stranger, asked('a')));
    t.ok(unknown instanceof module.AuthenticationError);
    t.match(unknown, { status: 401, type: 'authentication_error' });
    for (const model of ['nope', 'sim-embedding']) {
      const missing = await raised(sdk, send(client, { ...asked('a'), model }));
      t.ok(missing instanceof module.NotFoundError, model);
      t.match(missing, { status: 404, type: 'not_found_error', message: new RegExp(model) });
    }
    t.equal(gateway.simulator.state().totalRequests, 0, 'none of them has reached the upstream');
  });

  test(`${sdk.name}: an error carries the request id of the answer and of the log`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    let header: string | null = null;
    const client = createClient(sdk, gateway, {
      fetch: async (...given) => {
        const response = await fetch(...given);
        header = response.headers.get('request-id');
        return response;
      },
    });
    for (const body of [{ model: 'sim-text' }, asked('[[fault:status=503]] a')]) {
      const error = await raised(sdk, send(client, body));
      t.match(error.requestID, /^req_[0-9a-f]+$/);
      t.equal(error.requestID, header);
      const line = (await gateway.linesUntil(error.requestID ?? '')).at(-1);
      t.equal(line?.status, error.status);
    }
  });

  for (const kind of kinds) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: an upstream's own errors keep their class`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const classes = [
        [400, module.BadRequestError, 'invalid_request_error'],
        [404, module.NotFoundError, 'not_found_error'],
        [409, module.ConflictError, null],
        [429, module.RateLimitError, 'rate_limit_error'],
        [500, module.InternalServerError, 'api_error'],
        [503, module.InternalServerError, null],
        [529, module.InternalServerError, 'overloaded_error'],
      ] as const;
      for (const [status, errorClass, type] of classes) {
        for (const stream of [false, true]) {
          const error = await raised(sdk, send(client, { ...asked(`[[fault:status=${status}]] a`), stream }));
          t.ok(error instanceof errorClass, `${status}`);
          t.equal(error.status, status);
          t.match(
            error.error,
            { type: 'error', error: { type: type ?? String, message: String } },
            `${status}`,
          );
        }
      }
      // They are about the gateway's own key.
      for (const status of [401, 403]) {
        const error = await raised(sdk, send(client, asked(`[[fault:status=${status}]] a`)));
        t.ok(error instanceof module.InternalServerError, `${status}`);
        t.equal(error.status, 502);
        t.match(error.error, { type: 'error', error: { type: 'api_error', message: String } });
      }
      const page = await raised(sdk, send(client, asked('[[fault:status=502 html]] a')));
      t.ok(page instanceof module.InternalServerError);
      t.equal(page.status, 502);
    });

    test(`${served}: a rate limit is retried when the upstream says`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const limited = await raised(
        sdk,
        send(createClient(sdk, gateway), asked('[[fault:status=429 retry-after=7]] a')),
      );
      t.ok(limited instanceof module.RateLimitError);
      t.equal(limited.headers?.get('retry-after'), '7');

      const waits = skipWaits(t, 7000);
      const patient = createClient(sdk, gateway, { maxRetries: 1 });
      const answer = await patient.messages.create(asked('[[fault:status=429 retry-after=7 times=1]] a'));
      t.match(textOf(answer), /^Simulated answer/);
      t.equal(waits(), 1);
      t.equal(gateway.simulator.state().totalRequests, 3);
    });

    test(`${served}: an upstream that fails before its first event raises an error status`, async (t) => {
      const gateway = await startGateway(t, {
        demo: kind,
        adapt: (config) => ({
          ...config,
          timeouts: { ...config.timeouts, firstByteMs: 1500, idleMs: 1000 },
        }),
      });
      const client = createClient(sdk, gateway);
      const faults = [
        ['error-event', 502],
        ['reset', 502],
        ['close after=0', 502],
        ['truncate after=0', 502],
        ['hang', 504],
        ['wrong-protocol', 502],
      ] as const;
      await Promise.all(
        faults.map(async ([fault, status]) => {
          const error = await raised(sdk, send(client, { ...asked(`[[fault:${fault}]] a`), stream: true }));
          t.ok(error instanceof module.InternalServerError, fault);
          const type = status === 504 ? 'timeout_error' : 'api_error';
          t.match(error, { status, error: { type: 'error', error: { type } } }, fault);
        }),
      );
      for (const fault of ['reset', 'truncate', 'close', 'short-body', 'bad-head=lengths']) {
        const error = await raised(sdk, send(client, asked(`[[fault:${fault}]] a`)));
        t.match(error, { status: 502, type: 'api_error' }, fault);
      }
      t.match(textOf(await client.messages.create(asked('after all of it'))), /after all of it$/);
    });
  }

  test(`${sdk.name}: what a model of another protocol cannot do is refused by name`, async (t) => {
    const gateway = await startGateway(t, { demo: 'chat' });
    const client = createClient(sdk, gateway);
    const bad: readonly (readonly [object, RegExp])[] = [
      [
        { ...asked('a'), mcp_servers: [{ type: 'url', name: 'm', url: 'https://m.example.com' }] },
        /mcp_servers/,
      ],
      [{ ...asked('a'), container: 'c1' }, /container/],
    ];
    for (const [body, message] of bad) {
      const error = await raised(sdk, send(client, body));
      t.ok(error instanceof module.BadRequestError, `${message}`);
      t.match(error.error, { error: { type: 'invalid_request_error', message } });
    }
    t.equal(gateway.simulator.state().totalRequests, 0);
  });
}
