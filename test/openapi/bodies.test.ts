import { test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { uploadForms } from '../../src/openapi/forms.js';
import { jsonBodies } from '../../src/openapi/request-bodies.js';
import { formFields } from '../../src/protocols/images/schema.js';
import { readCompatBody } from '../../src/video/client-formats/compat.js';
import { readGenericBody } from '../../src/video/client-formats/generic.js';
import { readVendorjQuery, readVendorjSubmit } from '../../src/video/client-formats/vendorj.js';
import { readVendorkBody } from '../../src/video/client-formats/vendork.js';
import { requestBodies } from '../protocols/growing-conversation.js';
import { inputBody, pngUrl, promptBody } from '../protocols/images/samples.js';
import { agentBody, everything } from '../protocols/responses/bodies.js';
import { valuesOf } from '../schema/schema-values.js';
import { clients } from '../suites/translation/session.js';
import { fc } from '../support/seed.js';
import { pngText } from '../video/samples.js';
import { checkOf, wholeSchema } from './samples.js';

/** Rules that the schemas cannot say: what they let pass may still be refused for these. */
function isBeyondSchemas({ kind, param }: GatewayError): boolean {
  // A body of another endpoint; a body of responses whose input is nowhere.
  return kind === 'invalid_request_body' || (kind === 'missing_parameter' && param === 'input');
}

for (const [schema, { name }] of jsonBodies) {
  test(`${name} describes nothing that the gateway refuses`, (t) => {
    const takes = checkOf(name);
    let good = 0;
    fc.assert(
      fc.property(valuesOf(wholeSchema(name)), (value) => {
        const isGood = schema.check(value);
        if (isGood) good++;
        return isGood || !takes(value) || isBeyondSchemas(schema.explain(value));
      }),
      { numRuns: 600 },
    );
    t.ok(good > 0, `${good} good bodies`);
    t.end();
  });
}

test('the bodies that clients send fit', async (t) => {
  const names = {
    chat: 'ChatRequest',
    responses: 'ResponsesRequest',
    messages: 'MessagesRequest',
    generateContent: 'GenerateContentRequest',
  } as const;
  for (const client of clients) {
    const name = names[client.protocol];
    const takes = checkOf(name);
    for (const upstream of Object.keys(names) as (keyof typeof names)[]) {
      for (const body of requestBodies(client, upstream, true)) t.ok(takes(body), name);
    }
  }
  for (const body of [agentBody, everything]) t.ok(checkOf('ResponsesRequest')(body));
  t.ok(checkOf('EmbeddingsRequest')({ model: 'm', input: ['a', 'b'], encoding_format: 'base64' }));
  t.notOk(checkOf('EmbeddingsRequest')({ model: 'm', input: [] }));
  t.notOk(checkOf('MessagesRequest')({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }));
  for (const name of ['ImageGenerationRequest', 'ImageEditRequest']) {
    t.ok(checkOf(name)(inputBody([{ text: 'A cat' }, { image: pngUrl }])));
    t.ok(checkOf(name)(promptBody({ n: 2 })));
    t.notOk(checkOf(name)(promptBody({ input: { messages: [{}] } })));
  }
});

test('the text of a speech request has the bound of the vendor', async (t) => {
  const takes = checkOf('SpeechRequest');
  for (const length of [4096, 4097])
    t.equal(takes({ model: 'm', voice: 'v', input: '😀'.repeat(length) }), length === 4096);
});

/** The fields that the gateway leaves to the upstream come as texts. */
function asTexts(values: object): object {
  return { ...values, ...('temperature' in values ? { temperature: String(values.temperature) } : {}) };
}

for (const [form, { name }] of uploadForms) {
  test(`${name} has the fields that the gateway checks`, (t) => {
    const { file, ...fields } = (wholeSchema(name) as { properties: Record<string, object> }).properties;
    t.match(file, { format: 'binary' });
    t.strictSame(form.files, ['file']);
    t.strictSame(Object.keys(fields).sort(), [...form.kinds.keys()].sort());
    const takes = checkOf(name);
    fc.assert(
      fc.property(valuesOf({ type: 'object', required: ['model'], properties: fields }), (value) => {
        const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
        return !isObject || !takes({ ...value, file: '' }) || form.whole.check(asTexts(value));
      }),
      { numRuns: 600 },
    );
    t.end();
  });
}

test('the forms of images have the fields that the gateway checks, but for null', (t) => {
  const { image, mask, ...fields } = (wholeSchema('ImageEditForm') as { properties: Record<string, object> })
    .properties;
  t.match({ image, mask }, { image: { items: { format: 'binary' } }, mask: { format: 'binary' } });
  t.strictSame((wholeSchema('ImageGenerationForm') as { properties: unknown }).properties, fields);
  const takes = checkOf('ImageGenerationForm');
  fc.assert(
    fc.property(valuesOf(wholeSchema('ImageGenerationForm')), (value) => {
      const hasNull = Object.values((value ?? {}) as object).includes(null);
      return hasNull || takes(value) === formFields.check(value);
    }),
    { numRuns: 150 },
  );
  t.end();
});

const url = 'https://images.example/cat.png';
type Read = (body: Record<string, unknown>) => unknown;
const videoBodies: readonly (readonly [name: string, read: Read, base: object, values: object])[] = [
  [
    'VideoRequest',
    readCompatBody,
    { model: 'm', prompt: 'p' },
    {
      seconds: ['4', '04', '4.5', '0', '4s', 4, 4.5, 0, null, '1234567890'],
      size: ['1280x720', '0x1', '1280X720', '16:9', '720p', null],
      input_reference: [url, pngText, { image_url: url }, null, 1, {}],
      prompt: ['', 'p'.repeat(32_000), 'p'.repeat(32_001), '😀'.repeat(32_000), null],
      model: ['', 1],
    },
  ],
  [
    'GenericVideoRequest',
    readGenericBody,
    { model: 'm', prompt: 'p' },
    { image: [url, 1], duration: [5, '5', true], width: [0, 1.5], cfg_scale: [2, 0.5], metadata: [[], {}] },
  ],
  [
    'VendorkTextVideoRequest',
    (body) => readVendorkBody(body, 'text'),
    { model: 'm', prompt: 'p' },
    { model_name: ['m', '', null], prompt: ['', null], dynamic_masks: [[{}], [1]], sound: [true, 'on', 1] },
  ],
  [
    'VendorkImageVideoRequest',
    (body) => readVendorkBody(body, 'image'),
    { model: 'm', image: url },
    { image: ['', null, 1], prompt: ['', null, 'p'], fps: [0, 24], external_task_id: ['x', 1] },
  ],
  [
    'VendorjRequest',
    readVendorjSubmit,
    { req_key: 'm', prompt: 'p' },
    {
      req_key: ['', 1],
      binary_data_base64: [[pngText], [''], 'x'],
      frames: [0, 121, 1_000_001],
      seed: [-1, 1.5],
    },
  ],
  [
    'VendorjRequest',
    readVendorjQuery,
    { task_id: 't' },
    { req_json: ['{}', 1, null], req_key: [1, null, ''] },
  ],
];

for (const [name, read, base, values] of videoBodies) {
  test(`${name} takes what ${read.name || 'its reader'} takes`, async (t) => {
    const takes = checkOf(name);
    t.ok(takes(base));
    t.doesNotThrow(() => read({ ...base }));
    for (const member of Object.keys(base)) {
      const { [member]: _, ...rest } = base as Record<string, unknown>;
      t.ok(takes(rest) || isRefused(read, rest), `without ${member}`);
    }
    for (const [member, each] of Object.entries(values as Record<string, unknown[]>)) {
      for (const value of each) {
        const body = { ...base, [member]: value };
        const shown = `${member}: ${JSON.stringify(value).slice(0, 60)}`;
        t.equal(takes(body), !isRefused(read, body), shown);
      }
    }
  });
}

/** Also what only an upstream of the body's own format is asked. */
function isRefused(read: Read, body: Record<string, unknown>): boolean {
  try {
    const made = read(body);
    return typeof made === 'object' && made !== null && 'fault' in made && made.fault !== null;
  } catch (fault) {
    if (fault instanceof GatewayError) return true;
    throw fault;
  }
}
