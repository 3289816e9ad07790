import assert from 'node:assert/strict';
import { test } from 'tap';
import { GatewayError } from '../../../../src/errors.js';
import { compactResponses, responsesCodec } from '../../../../src/protocols/responses/index.js';
import { compactRequest, responsesRequest } from '../../../../src/protocols/responses/request/schema.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { cases, fc } from '../../../support/seed.js';
import { damage, type Json } from '../../damage.js';
import { writeRequest } from '../../write-request.js';
import { everything } from '../bodies.js';
import { sealer, target } from '../conversation.js';

const compactCodec = compactResponses.translation?.codec ?? responsesCodec;
const native = ['item_reference', 'compaction', 'web_search_call'];

/** What agents send beside the documented items, with calls of tools that are functions elsewhere. */
const ofAgents = [
  {
    type: 'additional_tools',
    role: 'developer',
    tools: [
      { type: 'namespace', name: 'functions', tools: [{ type: 'custom', name: 'exec' }] },
      { type: 'function', name: 'f', parameters: {} },
    ],
  },
  { type: 'custom_tool_call', call_id: 'c3', name: 'exec', namespace: 'functions', input: 'ls' },
  { type: 'custom_tool_call_output', call_id: 'c3', output: 'x' },
  { type: 'tool_search_call', call_id: 'c4', execution: 'client', arguments: { query: 'x' } },
  {
    type: 'tool_search_output',
    call_id: 'c4',
    execution: 'client',
    tools: [{ type: 'namespace', name: 'm', tools: [{ type: 'function', name: 'h' }] }],
  },
  {
    type: 'local_shell_call',
    id: 'lsh_1',
    call_id: 'c5',
    action: { type: 'exec', command: ['ls'], env: { A: 'b' }, timeout_ms: 5, working_directory: '/' },
  },
  { type: 'local_shell_call_output', id: 'lsh_1', output: 'x' },
];

/** Without what only an upstream of the protocol has. */
const translatable = {
  ...everything,
  input: [
    ...everything.input
      .filter(({ type }) => !native.includes(`${type}`))
      .map(({ content, ...item }) => ({
        ...item,
        content: Array.isArray(content) ? content.filter((part) => !('file_id' in part)) : content,
      })),
    ...ofAgents,
  ],
  tools: [
    ...everything.tools.slice(0, 2),
    { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'h', parameters: {} }] },
    { type: 'tool_search', execution: 'client', parameters: {} },
    { type: 'local_shell' },
  ],
  previous_response_id: null,
  conversation: null,
  prompt: null,
};

test('a body that passed the check is translated, or refused by a name in it', async (t) => {
  const whole = JSON.parse(JSON.stringify(translatable)) as Json;
  const wrong = fc.constantFrom<Json | undefined>(
    undefined,
    null,
    true,
    -1,
    '',
    'text',
    [],
    {},
    [{}],
    [null],
    {
      type: 'x',
    },
    // Nothing makes a text of it.
    { toString: 1, valueOf: 1 },
  );
  let translated = 0;
  let refused = 0;
  fc.assert(
    fc.property(fc.array(fc.nat(1000), { minLength: 1, maxLength: 7 }), wrong, (turns, by) => {
      const body = damage(whole, turns, by) as JsonObject;
      const isCompaction = !responsesRequest.check(body);
      if (isCompaction && !compactRequest.check(body)) return;
      const { decodeRequest } = isCompaction ? compactCodec : responsesCodec;
      try {
        const request = decodeRequest(body, false, sealer);
        JSON.parse(writeRequest(responsesCodec, request, target));
        translated++;
      } catch (error) {
        assert.ok(error instanceof GatewayError, String(error));
        assert.equal(error.status, 400);
        const [member = ''] = error.param?.split(/[.[]/) ?? [];
        assert.ok(member in everything, error.message);
        refused++;
      }
    }),
    { numRuns: cases(3000) },
  );
  t.ok(translated > cases(300), `${translated} translated`);
  t.ok(refused > cases(50), `${refused} refused`);
});
