import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import { decode } from './samples.js';

const weather = {
  type: 'custom',
  name: 'get_weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  description: 'w',
};
const other = { type: 'custom', name: 'other', input_schema: { type: 'object' }, description: 'o' };
const addition = (definition: unknown) => ({
  type: 'tool_addition',
  tool: { type: 'tool_definition', definition },
});
const back = (name: string) => ({ type: 'tool_addition', tool: { type: 'tool_reference', name } });
const removal = (name: string) => ({ type: 'tool_removal', tool: { type: 'tool_reference', name } });
const asked = { role: 'user', content: 'the weather in Rome?' };
const said = (...content: object[]) => ({ role: 'system', content });

function namesIn(...messages: object[]): readonly string[] {
  return decode({ tools: [other], messages }).tools.map(({ name }) => name);
}

test('a tool that a message brings is offered, and one that it takes away is not', async (t) => {
  // As `runner.addTools()` and `runner.removeTools()` of @anthropic-ai/sdk 1.14 send it.
  const request = decode({
    tools: [other],
    messages: [asked, said(addition(weather), removal('other'))],
  });
  t.strictSame(request.tools, [
    { name: 'get_weather', description: 'w', parameters: weather.input_schema, strict: null },
  ]);
  t.same(request.turns, [{ role: 'user', parts: [{ kind: 'text', text: asked.content }] }]);
  t.strictSame(request.leftOut, []);
});

test('changes count in their order, whoever says them', async (t) => {
  t.strictSame(namesIn(asked, said(removal('other')), asked, said(back('other'))), ['other']);
  t.strictSame(namesIn(asked, said(addition(weather)), asked, said(removal('get_weather'))), ['other']);
  t.strictSame(
    namesIn(asked, said(addition(weather), removal('get_weather'), back('get_weather')), asked),
    ['other', 'get_weather'],
    'a tool that a message brought is known by its name from there on',
  );
  t.strictSame(namesIn({ role: 'user', content: [{ type: 'text', text: 'a' }, addition(weather)] }), [
    'other',
    'get_weather',
  ]);
  const again = decode({
    tools: [other],
    messages: [asked, said(addition({ ...other, description: 'new' }))],
  });
  t.match(again.tools, [{ name: 'other', description: 'new' }]);
  t.equal(again.tools.length, 1);
});

test('a message that only changes tools is no turn', async (t) => {
  t.equal(decode({ messages: [asked, { role: 'user', content: [addition(weather)] }] }).turns.length, 1);
});

test('a compaction brings the changes of the turns that it stands for', async (t) => {
  const compaction = {
    type: 'compaction',
    content: 'so far',
    tool_changes: [addition(weather), removal('other')],
  };
  const request = decode({ tools: [other], messages: [{ role: 'assistant', content: [compaction] }, asked] });
  t.strictSame(
    request.tools.map(({ name }) => name),
    ['get_weather'],
  );
  t.strictSame(request.leftOut, []);
});

test('a change of tools that are not in the body is left out and named', async (t) => {
  const ofServer = { type: 'mcp_tool_reference', server_name: 's', name: 'f' };
  const request = decode({
    tools: [other],
    messages: [asked, said({ type: 'tool_addition', tool: ofServer }, removal('unknown'), back('unknown'))],
  });
  t.match(request.tools, [{ name: 'other' }]);
  t.strictSame(request.leftOut, ['tool_addition', 'tool_removal']);
});

test('a tool that is brought without a name is refused by its path', async (t) => {
  const at = 'messages[1].content[0].tool.definition';
  const paths = [
    [null, at],
    [{ input_schema: {} }, `${at}.name`],
  ] as const;
  for (const [definition, param] of paths) {
    try {
      decode({ messages: [asked, said(addition(definition))] });
      t.fail(param);
    } catch (error) {
      t.match(error, { param });
      t.ok(error instanceof GatewayError);
    }
  }
});
