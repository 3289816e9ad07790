import { test } from 'tap';
import { at, listAt } from '../support/json.js';
import { startStrictStage } from '../support/strict-upstream/stage.js';
import { post } from '../support/translated.js';

/* Lists of one that the vendor takes without their brackets, as its own examples in curl have them. */

const declaration = {
  name: 'get_weather',
  parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } } },
};
const single = {
  contents: { role: 'user', parts: { text: 'The weather, please. cell:tool' } },
  systemInstruction: { parts: { text: 'Be brief.' } },
  tools: { functionDeclarations: declaration, codeExecution: {} },
  safetySettings: { category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' },
};
const listed = {
  contents: [{ role: 'user', parts: [{ text: 'The weather, please. cell:tool' }] }],
  systemInstruction: { parts: [{ text: 'Be brief.' }] },
  tools: [{ functionDeclarations: [declaration], codeExecution: {} }],
  safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
};

for (const wire of ['chat', 'responses', 'messages'] as const)
  test(`contents, tools and settings that are one object are lists of one for ${wire} upstreams`, async (t) => {
    const { port, upstream } = await startStrictStage(t, wire);
    const answers = [];
    for (const body of [single, listed])
      answers.push(await post(port, '/v1beta/models/m:generateContent', body));
    for (const { status, head, body } of answers) {
      t.equal(status, 200, body);
      t.match(head, /^x-gateway-left-out: safetySettings, tools\.codeExecution\r$/m);
      const parts = listAt(JSON.parse(body), 'candidates', 0, 'content', 'parts');
      t.match(parts.at(-1), { functionCall: { name: 'get_weather', args: { city: 'Rome' } } });
    }
    const [first, second] = upstream.heard;
    t.equal(first?.broken, null);
    t.equal(first?.body, second?.body);
  });

test('their tokens are counted as those of lists', async (t) => {
  const { port } = await startStrictStage(t, 'chat');
  const totals = [];
  for (const body of [single, listed, { generateContentRequest: single }]) {
    const { status, body: text } = await post(port, '/v1beta/models/m:countTokens', body);
    t.equal(status, 200, text);
    totals.push(at(JSON.parse(text), 'totalTokens'));
  }
  const [first, second, third] = totals;
  t.ok(Number(first) > 0);
  t.strictSame([second, third], [first, first]);
});

test('what is wrong in them is named by its place', async (t) => {
  const { port } = await startStrictStage(t, 'chat');
  const bodies: readonly (readonly [object, string])[] = [
    [{ contents: { role: 'someone', parts: { text: 'hi' } } }, 'contents'],
    [{ contents: { parts: {} } }, 'contents.parts'],
    [
      { contents: { parts: [{ text: 'hi' }, { functionCall: { name: 5 } }] } },
      'contents.parts[1].functionCall.name',
    ],
    [{ ...single, tools: { functionDeclarations: {} } }, 'tools.functionDeclarations.name'],
  ];
  for (const [body, path] of bodies) {
    const answer = await post(port, '/v1beta/models/m:generateContent', body);
    t.equal(answer.status, 400, answer.body);
    t.match(answer.body, `'${path}'`);
  }
});
