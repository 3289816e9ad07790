import { fill, h, setText } from '../../dom.js';
import { duration, whole } from '../../format.js';
import { parseJson } from './json.js';
import type { CallRecord } from './record.js';
import { readRefusal } from './refusal.js';
import type { AnswerTokens, DraftCall, TextAnswer } from './text-answer.js';

/** A prompt and what came of it, as they are shown. */
export interface Exchange {
  readonly element: HTMLElement;
  /** Shows the text that has come so far. */
  showText(answer: TextAnswer): void;
  /** Shows what was made, and what can be done with it. */
  showMade(...nodes: readonly Node[]): void;
  /** How far it is. @param percent null where it is not known */
  showProgress(state: string, percent: number | null): void;
  showProblem(message: string): void;
  /** Shows an error that the gateway answered. */
  showRefusal(status: number, body: string): void;
  /** Shows how it went, once it has ended. */
  end(record: CallRecord, note: string | null): void;
}

export function createExchange(prompt: string): Exchange {
  const thinking = h('details', { class: 'thinking', hidden: true }, h('summary', {}, 'Thinking'));
  const thought = h('div', { class: 'said' });
  thinking.append(thought);
  const text = h('div', { class: 'said' });
  const calls = h('div', { class: 'calls' });
  const made = h('div', { class: 'made' });
  const state = h('p', { class: 'hint' }, 'Waiting …');
  const bar = h('progress', { hidden: true, max: 100, attributes: { 'aria-label': 'Progress' } });
  const problem = h('div', { attributes: { role: 'alert' } });
  const facts = h('p', { class: 'facts-line' });
  const answer = h(
    'div',
    { class: 'answer', attributes: { 'aria-busy': 'true' } },
    thinking,
    text,
    calls,
    made,
    state,
    bar,
    problem,
    facts,
  );
  return {
    element: h('li', { class: 'exchange' }, h('div', { class: 'asked' }, prompt), answer),
    showText(given) {
      state.hidden = given.text !== '' || given.calls.length > 0;
      if (given.reasoning !== '') setText(state, 'Thinking …');
      thinking.hidden = given.reasoning === '';
      setText(thought, given.reasoning);
      setText(text, given.text);
      fill(calls, given.calls.map(shownCall));
      if (given.error !== null) fill(problem, [h('p', { class: 'problem' }, given.error)]);
    },
    showMade: (...nodes) => made.append(...nodes),
    showProgress(said, percent) {
      setText(state, said);
      fill(problem, []);
      bar.hidden = false;
      if (percent === null) bar.removeAttribute('value');
      else bar.value = percent;
    },
    showProblem: (message) => fill(problem, [h('p', { class: 'problem' }, message)]),
    showRefusal: (status, body) => fill(problem, shownRefusal(status, body)),
    end(record, note) {
      answer.setAttribute('aria-busy', 'false');
      state.hidden = true;
      bar.hidden = true;
      fill(facts, factsOf(record, note));
    },
  };
}

function shownCall(call: DraftCall): Node {
  const value = parseJson(call.arguments);
  const shown = value === undefined ? call.arguments : JSON.stringify(value, null, 2);
  return h(
    'figure',
    { class: 'call' },
    h('figcaption', {}, `Calls ${call.name}`),
    h('pre', { class: 'code' }, shown),
  );
}

function shownRefusal(status: number, body: string): Node[] {
  const { message, kind, param } = readRefusal(status, body);
  const value = parseJson(body);
  return [
    h(
      'p',
      { class: 'problem' },
      h('strong', {}, kind === null ? `${status}` : `${status} ${kind}`),
      ` ${message}`,
      param === null ? null : ` (${param})`,
    ),
    h(
      'details',
      { class: 'more' },
      h('summary', {}, 'The whole body'),
      h('pre', { class: 'code' }, value === undefined ? body : JSON.stringify(value, null, 2)),
    ),
  ];
}

function factsOf(record: CallRecord, note: string | null): Node[] {
  const { status, headers, totalMs, tokens, finish } = record;
  const id = headers['x-request-id'];
  const path = headers['x-gateway-path'];
  const isWell = status !== null && status < 400;
  return [
    note === null ? null : h('span', { class: 'badge', data: { tone: 'warn' } }, note),
    status === null
      ? null
      : h('span', { class: 'badge', data: { tone: isWell ? 'good' : 'bad' } }, `${status}`),
    path === undefined ? null : h('span', { class: 'badge', title: 'How the gateway passed it on' }, path),
    finish === null ? null : h('span', { title: 'Why it ended' }, finish),
    totalMs === null ? null : h('span', {}, duration(totalMs / 1000)),
    tokens === null ? null : h('span', {}, tokensText(tokens)),
    id === undefined ? null : h('a', { href: '#requests', title: 'Look at the recent requests' }, id),
  ].filter((each) => each !== null);
}

function tokensText({ input, output }: AnswerTokens): string {
  return `${whole(input)} tokens in, ${whole(output)} out`;
}
