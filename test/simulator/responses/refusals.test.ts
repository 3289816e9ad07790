import { test } from 'tap';
import { simulate } from '../../support/simulator.js';
import { post } from '../post.js';

test('what the real one refuses is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const part = (role: string, type: string): object => ({
    input: [{ role, content: [{ type, text: 'a' }] }],
  });
  const call = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: 'a', output: 'x' };
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] };
  const said = { role: 'assistant', content: 'a' };
  const cases: [object, number, string | null, string | null, RegExp][] = [
    [{ model: undefined }, 400, 'model', 'missing_required_parameter', /model/],
    [{ model: 'nope' }, 404, 'model', 'model_not_found', /nope/],
    [{ input: undefined }, 400, 'input', 'missing_required_parameter', /input/],
    [{ messages: [] }, 400, 'messages', 'unsupported_parameter', /moved to 'input'/],
    [{ stop: ['a'] }, 400, 'stop', 'unknown_parameter', /Unknown parameter: 'stop'/],
    [{ max_output_tokens: 15 }, 400, 'max_output_tokens', 'integer_below_min_value', />= 16/],
    [
      { previous_response_id: 'resp_1' },
      400,
      'previous_response_id',
      'previous_response_not_found',
      /resp_1/,
    ],
    [{ conversation: { id: 'conv_1' } }, 404, 'conversation', null, /conv_1/],
    [
      { conversation: 'a', previous_response_id: 'b' },
      400,
      null,
      'mutually_exclusive_parameters',
      /exclusive/,
    ],
    [{ prompt: { id: 'pmpt_1' } }, 404, 'prompt', null, /pmpt_1/],
    [{ background: true }, 400, 'background', 'unsupported_value', /background/],
    [{ temperature: 3 }, 400, 'temperature', 'invalid_value', /temperature/],
    [{ reasoning: { effort: 'extreme' } }, 400, 'reasoning.effort', 'invalid_value', /effort/],
    [{ reasoning: { summary: 'yes' } }, 400, 'reasoning.summary', 'invalid_value', /summary/],
    [{ input: [output] }, 400, 'input', null, /No tool call found for function call output with call_id a\./],
    [{ input: [call] }, 400, 'input', null, /No tool output found for function call a\./],
    [
      { input: [call, { ...output, type: 'custom_tool_call_output' }] },
      400,
      'input',
      null,
      /No tool call found for custom tool call output/,
    ],
    [{ input: [reasoning, { role: 'user', content: 'a' }] }, 400, 'input', null, /required following item/],
    [
      { input: [{ ...reasoning, summary: undefined }, said] },
      400,
      'input[0].summary',
      'missing_required_parameter',
      /summary/,
    ],
    [{ input: [{ ...said, id: 'a' }] }, 400, 'input[0].id', 'invalid_value', /begins with 'msg'/],
    [
      { input: [{ ...call, call_id: 'a'.repeat(65) }] },
      400,
      'input[0].call_id',
      'string_above_max_length',
      /64/,
    ],
    [{ input: [{ ...call, arguments: {} }] }, 400, 'input[0].arguments', 'invalid_value', /a string/],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 404, 'input', null, /msg_1/],
    [{ input: [{ type: 'nothing' }] }, 400, 'input[0].type', 'invalid_value', /'nothing'/],
    [
      { input: [{ role: 'tool', content: 'a' }] },
      400,
      'input[0].role',
      'invalid_value',
      /Supported values are: 'assistant'/,
    ],
    [
      part('assistant', 'input_text'),
      400,
      'input[0].content[0].type',
      'invalid_value',
      /'output_text', 'refusal'/,
    ],
    [part('user', 'text'), 400, 'input[0].content[0].type', 'invalid_value', /'input_text'/],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'AAAA' }] }] },
      400,
      'input[0].content[0].image_url',
      'invalid_value',
      /data URL/,
    ],
    [
      { tools: [{ type: 'function', function: {} }] },
      400,
      'tools[0].name',
      'missing_required_parameter',
      /name/,
    ],
    [{ tools: [{ type: 'nothing' }] }, 400, 'tools[0].type', 'invalid_value', /nothing/],
    [{ tool_choice: { type: 'function', name: 'f' } }, 400, 'tool_choice', null, /'f' not found/],
    [
      { text: { format: { type: 'json_schema', schema: {} } } },
      400,
      'text.format.name',
      'missing_required_parameter',
      /name/,
    ],
    [{ text: { format: { type: 'yaml' } } }, 400, 'text.format.type', 'invalid_value', /json_schema/],
  ];
  for (const [more, status, param, code, message] of cases) {
    const heard = await post(simulator, '/responses', { model: 'sim-text', input: 'Hi', ...more });
    t.match(
      [heard.status, JSON.parse(heard.text)],
      [status, { error: { param, code, message, type: 'invalid_request_error' } }],
      JSON.stringify(more),
    );
  }
});
