import { test } from 'tap';
import type { StreamEvent } from '../../../src/conversation/answer.js';
import { GatewayError } from '../../../src/errors.js';
import { responsesCodec } from '../../../src/protocols/responses/index.js';
import { createClient, sdks } from '../../support/sdks/openai.js';
import { context } from './conversation.js';
import { callSteps, encodeText, end, finish, start, textStep, usage } from './steps.js';

const question = { model: 'm', input: 'hi' };
const steps: readonly StreamEvent[] = [
  start,
  { kind: 'reasoning', choice: 0, text: 'hm' },
  { kind: 'signature', choice: 0, signature: 'gw1.token' },
  textStep('hi'),
  { kind: 'citation', choice: 0, citation: { start: 0, end: 2, url: 'https://a', title: 'A' } },
  textStep(' you'),
  { kind: 'refusal', choice: 0, text: 'no' },
  ...callSteps,
  { kind: 'signature', choice: 0, signature: 'gw1.other' },
  textStep('bye'),
  finish('toolCalls'),
  usage,
  end,
];

for (const sdk of sdks) {
  const clientOf = (body: string, type: string) =>
    createClient(
      sdk,
      { url: 'http://127.0.0.1' },
      { fetch: async () => new Response(body, { headers: { 'content-type': type } }) },
    );
  const streaming = (given: readonly StreamEvent[], of = context) =>
    clientOf(encodeText(given, of), 'text/event-stream');

  test(`${sdk.name} puts together what a stream says`, async (t) => {
    const final = await streaming(steps).responses.stream(question).finalResponse();
    t.match(final, {
      id: 'resp_1',
      status: 'completed',
      output: [
        { type: 'reasoning', encrypted_content: 'gw1.token' },
        { type: 'message', content: [{ text: 'hi you' }, { refusal: 'no' }] },
        { type: 'function_call', call_id: 'call_7', arguments: '{"a":1}' },
        { type: 'reasoning', encrypted_content: 'gw1.other' },
        { type: 'message', content: [{ text: 'bye' }] },
      ],
      usage: { input_tokens: 5 },
    });
  });

  test(`${sdk.name} takes an answer that was cut and a compaction`, async (t) => {
    const cut = [start, textStep('hi'), finish('length'), end];
    const compacting = { ...context, compaction: 'item' as const };
    for (const [given, of, last] of [
      [cut, context, 'response.incomplete'],
      [[start, textStep('hi'), finish('stop'), end], compacting, 'response.completed'],
    ] as const) {
      const types: string[] = [];
      const helper = streaming(given, of).responses.stream(question);
      helper.on('event', ({ type }) => types.push(type));
      const final = await helper.finalResponse();
      t.equal(types.at(-1), last);
      t.equal(final.output.length, 1);
    }
  });

  test(`${sdk.name} raises a stream's error, however it is read`, async (t) => {
    const error = new GatewayError('upstream_error', 'It broke.');
    for (const given of [[start, textStep('hi'), ...callSteps.slice(0, 2)], []]) {
      const broken: StreamEvent[] = [...given, { kind: 'error', error }];
      await t.rejects(streaming(broken).responses.stream(question).finalResponse(), /It broke/);
      const events = await streaming(broken).responses.create({ ...question, stream: true });
      await t.rejects(async () => {
        for await (const event of events) t.ok(event.type);
      }, /It broke/);
    }
  });

  test(`${sdk.name} reads a whole answer`, async (t) => {
    const answer = {
      choices: [
        { parts: [{ kind: 'text' as const, text: 'hi' }], finish: 'stop' as const, stopSequence: null },
      ],
      usage: null,
    };
    const body = responsesCodec.encodeAnswer(answer, context);
    const read = await clientOf(body, 'application/json').responses.create(question);
    t.equal(read.output_text, 'hi');
  });
}
