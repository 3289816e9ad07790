import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { cancellingOnLeave } from '../support/leaving.js';
import { collect, createClient, sdks } from '../support/sdks/openai.js';
import { fc } from '../support/seed.js';

/** What an upstream does to a call, and all of them must be answered all the same. */
const faults = ['', 'stale', 'drop', 'until-close', 'early-hints', 'gzip', 'slow-bytes', 'rate=2000'];

interface Caller {
  readonly sdk: number;
  readonly fault: string;
  readonly stream: boolean;
  /** Leaves after the first event, or without having heard anything. */
  readonly leaves: boolean;
  /** Calls that it makes one after the other. */
  readonly calls: number;
}

const caller: fc.Arbitrary<Caller> = fc.record({
  sdk: fc.nat(sdks.length - 1),
  fault: fc.constantFrom(...faults),
  stream: fc.boolean(),
  leaves: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  calls: fc.integer({ min: 1, max: 3 }),
});

test('callers at the same time each get their own answer, whatever happens to connections', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator', adapt: cancellingOnLeave });
  const { simulator } = gateway;
  const clients = sdks.map((sdk) => createClient(sdk, gateway));
  let number = 0;

  async function serve({ sdk, fault, stream, leaves }: Caller): Promise<void> {
    const client = clients[sdk];
    if (client === undefined) return;
    const hangs = leaves ? `[[fault:hang${stream ? ' after=1' : ''}]] ` : '';
    const content = `${hangs}${fault === '' ? '' : `[[fault:${fault}]] `}call ${number++}`;
    const asked = { model: 'sim-text', messages: [{ role: 'user' as const, content }] };
    if (leaves && !stream) {
      const controller = new AbortController();
      const before = simulator.state().totalRequests;
      const call = client.chat.completions.create(asked, { signal: controller.signal });
      const failed = call.then(
        () => false,
        () => true,
      );
      await eventually(() => simulator.state().totalRequests > before);
      controller.abort();
      if (!(await failed)) throw new Error('an aborted call was answered');
      return;
    }
    if (!stream) {
      const { choices } = await client.chat.completions.create(asked);
      expect(choices[0]?.message.content, content);
      return;
    }
    const events = await client.chat.completions.create({ ...asked, stream });
    if (leaves) {
      for await (const _ of events) break;
      return;
    }
    const chunks = await collect(events);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''), content);
  }

  function expect(answer: string | null | undefined, content: string): void {
    if (answer !== `Simulated answer to: ${content}`) throw new Error(`${content}: ${answer}`);
  }

  await fc.assert(
    fc.asyncProperty(fc.array(caller, { minLength: 1, maxLength: 24 }), async (callers) => {
      await Promise.all(
        callers.map(async (one) => {
          for (let turn = 0; turn < one.calls; turn++) await serve(one);
        }),
      );
      await eventually(() => simulator.state().openRequests === 0);
    }),
    { numRuns: 12, endOnFailure: true },
  );
  t.ok(number > 0);
});
