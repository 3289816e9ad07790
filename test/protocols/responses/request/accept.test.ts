import { test } from 'tap';
import {
  compactRequest,
  passedCompactRequest,
  passedInputTokensRequest,
  passedResponsesRequest,
  responsesRequest,
} from '../../../../src/protocols/responses/request/schema.js';
import { validateBody } from '../../../../src/schema/accept.js';
import { usualCost } from '../../../../src/wire/json.js';
import { agentBody, everything } from '../bodies.js';

/*
 * The full check would answer for these as well, only slower: nothing else would show that the fast one had ceased
 * to know them.
 */

const image = `data:image/png;base64,${'iVBORw0KGgo'.repeat(2000)}`;
const bodies: Readonly<Record<string, { model: string; stream?: boolean | null }>> = {
  'one text': { model: 'gpt-4o', input: 'What is the weather in Zürich? 漢字 "quoted"\n' } as never,
  'an empty input': { model: 'gpt-4o', input: [] } as never,
  'messages without a type': {
    model: 'gpt-4o',
    input: [
      { role: 'developer', content: 'Be brief.' },
      { content: [{ type: 'input_text', text: 'hi' }], role: 'user' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'hi' }], id: 'msg_1' },
      { role: 'user', content: [{ type: 'input_image', image_url: image }] },
    ],
  } as never,
  'nulls for what is not set': {
    model: 'gpt-4o',
    input: 'hi',
    stream: null,
    tools: null,
    reasoning: null,
    text: null,
    previous_response_id: null,
  } as never,
  'every documented member': everything,
  'a coding agent': agentBody,
  'a coding agent that wants a compaction': {
    ...agentBody,
    input: [...agentBody.input, { type: 'compaction_trigger' }],
  } as never,
};

for (const [name, body] of Object.entries(bodies)) {
  test(`accepted without a parse: ${name}`, async (t) => {
    const expected = { model: body.model, stream: body.stream === true, includeUsage: false };
    for (const text of [JSON.stringify(body), JSON.stringify(body, null, 2), spaced(body)]) {
      t.match(passedResponsesRequest.accept(Buffer.from(text)), expected);
      t.match(passedCompactRequest.accept(Buffer.from(text)), { model: body.model });
    }
    t.equal(responsesRequest.check(body), true);
    t.equal(compactRequest.check(body), true);
  });
}

/** With a space after colons and commas, and all but ASCII escaped, as Python writes it. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([key, member]) => `${spaced(key)}: ${spaced(member)}`);
    return `{${members.join(', ')}}`;
  }
  return JSON.stringify(value).replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

test('it is told whether items bring tools, with and without a parse', (t) => {
  const message = '{"role":"user","content":"x"}';
  const bodies: readonly (readonly [input: string, hasTools: boolean, isAccepted: boolean])[] = [
    ['"x"', false, true],
    ['null', false, true],
    ['{"tools":[]}', false, true],
    ['[]', false, true],
    [`[${message}]`, false, true],
    ['["x",1.5,-2e3,null,true,false,[{"tools":[]}],{},{"content":[{"tools":[]}]}]', false, true],
    [`[${message},{"tools":null}]`, false, true],
    [`[${message},{"type":"additional_tools","tools":[]}]`, true, true],
    [`[{"tools" : {"a":[1]}, "type":"x"},${message}]`, true, true],
    [`[${message},{"too\\u006cs":[]}]`, true, false],
    [`[{"tools":[]},${message},{"too\\u006cs":1}]`, true, false],
  ];
  for (const schema of [passedResponsesRequest, passedCompactRequest, passedInputTokensRequest])
    for (const [input, hasTools, isAccepted] of bodies) {
      const body = Buffer.from(`{"model":"m","input":${input},"x":[{"tools":[1]}]}`);
      t.match(validateBody(body, schema, usualCost), { itemTools: hasTools }, input);
      t.match(
        validateBody(body, { ...schema, accept: () => null }, usualCost),
        { itemTools: hasTools },
        input,
      );
      t.equal(schema.accept(body) !== null, isAccepted, `${input} without a parse`);
    }
  t.end();
});
