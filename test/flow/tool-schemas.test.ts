import { test } from 'tap';
import { type TextProtocolName, textProtocols } from '../../src/conversation/request.js';
import { listAt } from '../support/json.js';
import { startStrictStage } from '../support/strict-upstream/stage.js';
import { post } from '../support/translated.js';

/* Schemas of tools as clients of one vendor send them, at upstreams that refuse what their own vendor does. */

const question = 'The weather, please. cell:tool';

interface AskedTool {
  readonly schema: object;
  readonly strict?: boolean;
}

/** Bodies with one tool, `get_weather`. */
const bodies: Readonly<Record<TextProtocolName, (tool: AskedTool) => readonly [path: string, body: object]>> =
  {
    chat: ({ schema, strict }) => [
      '/v1/chat/completions',
      {
        model: 'm',
        messages: [{ role: 'user', content: question }],
        tools: [{ type: 'function', function: { name: 'get_weather', parameters: schema, strict } }],
      },
    ],
    responses: ({ schema, strict }) => [
      '/v1/responses',
      {
        model: 'm',
        input: question,
        tools: [{ type: 'function', name: 'get_weather', parameters: schema, strict: strict ?? false }],
      },
    ],
    messages: ({ schema, strict }) => [
      '/v1/messages',
      {
        model: 'm',
        max_tokens: 100,
        messages: [{ role: 'user', content: question }],
        tools: [{ name: 'get_weather', input_schema: schema, strict }],
      },
    ],
    generateContent: ({ schema }) => [
      '/v1beta/models/m:generateContent',
      {
        contents: [{ role: 'user', parts: [{ text: question }] }],
        tools: [{ functionDeclarations: [{ name: 'get_weather', parametersJsonSchema: schema }] }],
      },
    ],
  };

const leftOutOf = (head: string) => /^x-gateway-left-out: (.*)\r$/m.exec(head)?.[1];

const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const shut = { ...city, additionalProperties: false };
const place = {
  $defs: {
    City: city,
    Point: { type: 'object', properties: { lat: { type: 'number' }, lon: { type: 'number' } } },
  },
  oneOf: [{ $ref: '#/$defs/City' }, { $ref: '#/$defs/Point' }],
};

for (const wire of textProtocols)
  for (const from of textProtocols) {
    if (wire === from) continue;
    test(`a choice at the root of a ${from} client's tool is one object for ${wire} upstreams`, async (t) => {
      for (const jsonSchema of wire === 'generateContent' ? [true, false] : [true]) {
        const target = wire === 'generateContent' ? { translation: { jsonSchema } } : {};
        const { port, upstream } = await startStrictStage(t, wire, { target });
        const { status, head, body } = await post(port, ...bodies[from]({ schema: place }));
        t.equal(status, 200, body);
        t.equal(upstream.heard[0]?.broken, null);
        t.equal(leftOutOf(head), 'oneOf');
        t.match(body, /\\?"city\\?":\s?\\?"Rome\\?"/, 'its call comes back as it was made');
      }
    });
  }

interface StrictCase {
  readonly schema: object;
  /** Upstreams at which it is not strict any more. */
  readonly lostAt: readonly TextProtocolName[];
}

const strictCases: Readonly<Record<string, StrictCase>> = {
  'an object that is not closed': { schema: city, lostAt: [] },
  'a member that may be left out': {
    schema: { ...shut, properties: { city: { type: 'string' }, unit: { type: 'string' } } },
    lostAt: ['chat', 'responses'],
  },
  'an object of any members': {
    schema: { ...shut, properties: { city: { type: 'object' } } },
    lostAt: ['chat', 'responses', 'messages'],
  },
  bounds: {
    schema: { ...shut, properties: { city: { type: 'string', maxLength: 20 } } },
    lostAt: ['messages'],
  },
};

for (const [what, { schema, lostAt }] of Object.entries(strictCases))
  test(`a strict tool with ${what} is taken, and strict where it can be`, async (t) => {
    for (const wire of ['chat', 'responses', 'messages'] as const) {
      const { port, upstream } = await startStrictStage(t, wire);
      for (const from of ['chat', 'responses', 'messages'] as const) {
        if (wire === from) continue;
        const { status, head, body } = await post(port, ...bodies[from]({ schema, strict: true }));
        const cell = `${from} to ${wire}`;
        t.equal(status, 200, `${cell}: ${body}`);
        const heard = upstream.heard.at(-1);
        t.equal(heard?.broken, null, cell);
        const isLost = lostAt.includes(wire);
        t.equal(leftOutOf(head), isLost ? 'strict' : undefined, cell);
        const [tool] = listAt(JSON.parse(heard?.body ?? ''), 'tools');
        const declared = wire === 'chat' ? tool?.function : tool;
        t.match(
          declared,
          isLost && wire === 'responses' ? { strict: false } : { strict: isLost ? undefined : true },
          cell,
        );
      }
    }
  });
