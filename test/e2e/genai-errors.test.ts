import { test } from 'tap';
import { type ServedBy, startGateway } from '../support/gateway.js';
import { bodyOf, type Client, createClient, raised, sdks } from '../support/sdks/genai.js';

const kinds: readonly ServedBy[] = ['simulator', 'chat', 'messages'];

function ask({ models }: Client, contents: string, stream = false): Promise<unknown> {
  const asked = { model: 'sim-text', contents };
  return stream ? models.generateContentStream(asked) : models.generateContent(asked);
}

for (const sdk of sdks) {
  test(`${sdk.name}: refusals of the gateway raise the SDK's error with the whole body`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    const client = createClient(sdk, gateway);
    const { models } = client;
    const bad: readonly (readonly [object, RegExp])[] = [
      [{ candidateCount: [2] }, /generationConfig\.candidateCount/],
      [{ maxOutputTokens: {} }, /generationConfig\.maxOutputTokens/],
    ];
    for (const [config, message] of bad) {
      const error = await raised(
        sdk,
        models.generateContent({
          model: 'sim-text',
          contents: 'a',
          config: config as { temperature: number },
        }),
      );
      t.equal(error.status, 400);
      t.match(bodyOf(error), { code: 400, status: 'INVALID_ARGUMENT', message });
    }
    const stranger = await raised(sdk, ask(createClient(sdk, gateway, 'sk-unknown'), 'a'));
    t.equal(stranger.status, 401);
    t.match(bodyOf(stranger), { code: 401, status: 'UNAUTHENTICATED' });
    for (const model of ['nope', 'sim-embedding']) {
      const missing = await raised(sdk, models.generateContent({ model, contents: 'a' }));
      t.equal(missing.status, 404);
      t.match(bodyOf(missing), { code: 404, status: 'NOT_FOUND', message: new RegExp(model) });
    }
    t.equal(gateway.simulator.state().totalRequests, 0, 'none of them has reached the upstream');
  });

  for (const kind of kinds) {
    test(`${sdk.name} on ${kind}: an upstream's own errors keep their status`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const client = createClient(sdk, gateway);
      const words = [
        [400, 'INVALID_ARGUMENT'],
        [404, 'NOT_FOUND'],
        [429, 'RESOURCE_EXHAUSTED'],
        [500, 'INTERNAL'],
        [503, 'UNAVAILABLE'],
      ] as const;
      for (const [code, status] of words) {
        for (const stream of [false, true]) {
          const error = await raised(sdk, ask(client, `[[fault:status=${code}]] a`, stream));
          t.equal(error.status, code);
          t.match(bodyOf(error), { code, status, message: String });
        }
      }
      t.equal(gateway.simulator.state().totalRequests, words.length * 2, 'nobody has retried');
      // They are about the gateway's own key.
      for (const status of [401, 403]) {
        const error = await raised(sdk, ask(client, `[[fault:status=${status}]] a`, false));
        t.equal(error.status, 502, `${status}`);
        t.match(bodyOf(error), { code: 502, message: String });
      }
    });

    test(`${sdk.name} on ${kind}: an upstream that fails before its first event raises a status`, async (t) => {
      const client = createClient(
        sdk,
        await startGateway(t, {
          demo: kind,
          adapt: (config) => ({
            ...config,
            timeouts: { ...config.timeouts, firstByteMs: 1500, idleMs: 1000 },
          }),
        }),
      );
      const faults = [
        ['error-event', 502, 'INTERNAL'],
        ['reset', 502, 'INTERNAL'],
        ['close after=0', 502, 'INTERNAL'],
        ['hang', 504, 'DEADLINE_EXCEEDED'],
        ['wrong-protocol', 502, 'INTERNAL'],
      ] as const;
      await Promise.all(
        faults.map(async ([fault, code, status]) => {
          const error = await raised(sdk, ask(client, `[[fault:${fault}]] a`, true));
          t.equal(error.status, code, fault);
          t.match(bodyOf(error), { code, status }, fault);
        }),
      );
      for (const fault of ['reset', 'truncate', 'close', 'short-body']) {
        const error = await raised(sdk, ask(client, `[[fault:${fault}]] a`));
        t.match(bodyOf(error), { code: 502, status: 'INTERNAL' }, fault);
      }
    });
  }

  test(`${sdk.name}: what a model of another protocol cannot do is refused by name`, async (t) => {
    const gateway = await startGateway(t, { demo: 'messages' });
    const { models } = createClient(sdk, gateway);
    const bad = [
      [{ cachedContent: 'cachedContents/1' }, /cachedContent/],
      [{ responseModalities: ['AUDIO'] }, /generationConfig\.responseModalities/],
    ] as const;
    for (const [config, message] of bad) {
      const asked = { model: 'sim-text', contents: 'a', config } as Parameters<
        typeof models.generateContent
      >[0];
      const error = await raised(sdk, models.generateContent(asked));
      t.match(bodyOf(error), { code: 400, status: 'INVALID_ARGUMENT', message });
    }
    t.equal(gateway.simulator.state().totalRequests, 0);
  });
}
