import { test } from 'tap';
import type { RequestRules } from '../../../src/conversation/codec.js';
import { fitPrefill } from '../../../src/conversation/fit/turns.js';
import type { Turn } from '../../../src/conversation/request.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const begun = (words: string): Turn => ({ role: 'assistant', parts: [{ kind: 'text', text: words }] });
const fit = (prefill: RequestRules['prefill'], isAdaptive: boolean, ...turns: Turn[]) =>
  fittedBy(
    fitPrefill,
    { ...plain, turns: [...plain.turns, ...turns] },
    { ...anything, prefill },
    {
      ...target,
      thinking: isAdaptive ? 'adaptive' : 'budget',
    },
  ).request.turns;

test('an answer that is begun in the request is asked for where it is not gone on with', async (t) => {
  for (const turns of [fit('never', false, begun('{')), fit('option', true, begun('{'))]) {
    t.strictSame(turns.slice(0, 2), [...plain.turns, begun('{')]);
    t.match(turns[2], { role: 'user', parts: [{ text: /^Go on exactly where your last message ends/ }] });
  }
  t.equal(fit('option', false, begun('{')).length, 2);
  t.equal(fit('always', true, begun('{')).length, 2);
  t.equal(fit('never', true, begun(' ')).length, 2, 'nothing is begun');
  t.equal(fit('never', true).length, 1);
});

test('blank turns behind the begun answer, which are not written, do not hide it', async (t) => {
  const begunAt = [...plain.turns, begun('y')];
  const blank: Turn[] = [
    { role: 'user', parts: [{ kind: 'text', text: ' ' }] },
    { role: 'system', text: '' },
  ];
  for (const turn of [...blank, begun('')]) {
    const { turns } = fittedBy(
      fitPrefill,
      { ...plain, turns: [...begunAt, turn] },
      { ...anything, prefill: 'option', firstTurn: 'user' },
      { ...target, thinking: 'adaptive' },
    ).request;
    t.match(turns[3], { role: 'user', parts: [{ text: /^Go on exactly where your last message ends/ }] });
  }
  for (const turn of blank) t.equal(fit('never', true, begun('y'), turn).length, 3, 'responses get them');
});
