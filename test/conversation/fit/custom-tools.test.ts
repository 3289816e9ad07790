import { test } from 'tap';
import type { StreamEvent } from '../../../src/conversation/answer.js';
import { fitRequest } from '../../../src/conversation/fit/fit.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { ConversationRequest, Tool } from '../../../src/conversation/request.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { anything } from './rules.js';

const grammar = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' };
const patch: Tool = {
  name: 'apply_patch',
  description: 'Edits files.',
  parameters: null,
  strict: null,
  custom: { format: grammar },
};
const read: Tool = { name: 'read', description: null, parameters: { type: 'object' }, strict: true };
const call = {
  kind: 'toolCall',
  id: 'c1',
  name: 'apply_patch',
  input: '*** "x"\n',
  custom: true,
  at: '',
} as const;
const request: ConversationRequest = {
  ...plain,
  from: 'responses',
  tools: [patch, read],
  turns: [
    { role: 'assistant', parts: [{ kind: 'text', text: 'so' }, call] },
    {
      role: 'user',
      parts: [{ kind: 'toolResult', callId: 'c1', name: call.name, content: [], isError: false, at: '' }],
    },
  ],
};

const fit = (given: ConversationRequest, customTools: 'always' | 'option' | 'never', known = false) =>
  fitRequest(given, {
    rules: { ...anything, customTools },
    options: { ...target, customTools: known },
    leftOut: new LeftOut(),
  });

test('a target that knows tools of free text gets them, and its calls come back as they are', async (t) => {
  for (const fitted of [fit(request, 'always'), fit(request, 'option', true)]) {
    t.equal(fitted.request, request);
    t.equal(fitted.restorer, null);
  }
});

test('for any other they are functions with one text, in the tools and in the history', async (t) => {
  const { tools, turns } = fit(request, 'option').request;
  t.match(tools[0], {
    name: 'apply_patch',
    custom: undefined,
    parameters: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
  });
  t.match(tools[0]?.description, /^Edits files\.\n\n.*grammar \(lark\):\nstart: "x"$/);
  t.equal(tools[1], read);
  t.strictSame(turns[0], {
    role: 'assistant',
    parts: [
      { kind: 'text', text: 'so' },
      { ...call, custom: false, input: '{"input":"*** \\"x\\"\\n"}' },
    ],
  });
});

test('a call in the history is one of a function when its tool is declared no more', async (t) => {
  const { request: fitted, restorer } = fit({ ...request, tools: [read] }, 'never');
  t.match(fitted.turns[0], { parts: [{}, { custom: false }] });
  t.equal(restorer, null);
});

test('a streamed call comes back as one of free text, its argument unwrapped', async (t) => {
  const { restorer } = fit(request, 'never');
  const out: StreamEvent[] = [];
  const events: StreamEvent[] = [
    { kind: 'text', choice: 0, text: 'so' },
    { kind: 'callStart', choice: 0, call: 0, id: 'c1', name: 'apply_patch', custom: false },
    { kind: 'callArguments', choice: 0, call: 0, text: '{"inp' },
    { kind: 'callArguments', choice: 0, call: 0, text: 'ut":"a\\n' },
    { kind: 'callArguments', choice: 0, call: 0, text: 'b"}' },
    { kind: 'callEnd', choice: 0, call: 0 },
    { kind: 'callStart', choice: 0, call: 1, id: 'c2', name: 'read', custom: false },
    { kind: 'callArguments', choice: 0, call: 1, text: '{"input":1}' },
    { kind: 'callEnd', choice: 0, call: 1 },
  ];
  for (const event of events) restorer?.event(event, out);
  t.strictSame(out, [
    events[0],
    { kind: 'callStart', choice: 0, call: 0, id: 'c1', name: 'apply_patch', custom: true },
    { kind: 'callArguments', choice: 0, call: 0, text: 'a\n' },
    { kind: 'callArguments', choice: 0, call: 0, text: 'b' },
    ...events.slice(5),
  ]);
});

test('a call without input has an empty text, since each call has one', async (t) => {
  const { restorer } = fit(request, 'never');
  const out: StreamEvent[] = [];
  const end: StreamEvent = { kind: 'callEnd', choice: 0, call: 0 };
  restorer?.event({ kind: 'callStart', choice: 0, call: 0, id: '', name: 'apply_patch', custom: false }, out);
  restorer?.event({ kind: 'callArguments', choice: 0, call: 0, text: '{}' }, out);
  restorer?.event(end, out);
  t.strictSame(out.slice(1), [{ kind: 'callArguments', choice: 0, call: 0, text: '' }, end]);
});

test('a whole answer comes back likewise, whatever the model wrote', async (t) => {
  const { restorer } = fit(request, 'never');
  const answerOf = (input: string) =>
    restorer?.answer({
      choices: [
        {
          parts: [{ kind: 'toolCall', id: 'c', name: 'apply_patch', input, custom: false, at: '' }],
          finish: 'toolCalls',
          stopSequence: null,
        },
      ],
      usage: null,
    }).choices[0]?.parts;
  t.match(answerOf('{"input":"a\\nb"}'), [{ custom: true, input: 'a\nb' }]);
  t.match(answerOf('*** Begin'), [{ custom: true, input: '*** Begin' }]);
  t.match(answerOf('{}'), [{ custom: true, input: '' }]);
  t.match(answerOf('{"input":"a\\nb'), [{ custom: true, input: 'a\nb' }], 'cut by the token limit');
  t.match(answerOf('{"text":"a'), [{ custom: true, input: '{"text":"a' }]);
});
