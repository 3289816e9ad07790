import { h, setText } from '../../dom.js';
import { field, numberIn, numberInput } from './fields.js';
import { isObject, type JsonObject, parseJson } from './json.js';
import type { TextSettings } from './text-request.js';

/** The part of the settings that belongs to a kind. */
export interface KindSettings<Settings> {
  readonly element: HTMLElement;
  read(): Omit<Settings, 'model'>;
  /** @returns what is wrong, or null */
  problem(): string | null;
  /** Shows what the protocol can be told. Left out where that is the same for all of them. */
  showProtocol?(protocol: string): void;
}

/** @param onChange hears of every change */
export function createChatSettings(onChange: () => void): KindSettings<TextSettings> {
  const system = h('textarea', { rows: 3, placeholder: 'None', on: { input: onChange } });
  const maxTokens = numberInput({ min: 1, placeholder: 'Unset' }, onChange);
  const temperature = numberInput({ min: 0, max: 2, step: 0.1, placeholder: 'Unset' }, onChange);
  const stream = h('input', { type: 'checkbox', checked: true, on: { change: onChange } });
  const extra = h('textarea', {
    rows: 4,
    class: 'json',
    spellcheck: false,
    placeholder: '{"tools": […], "reasoning_effort": "low"}',
    on: { input: () => changeExtra() },
  });
  const extraProblem = h('p', { class: 'problem', attributes: { role: 'alert' } });
  let fields: JsonObject = {};
  let isExtraWrong = false;

  const changeExtra = (): void => {
    const text = extra.value.trim();
    const value = text === '' ? {} : parseJson(text);
    isExtraWrong = !isObject(value);
    if (isObject(value)) fields = value as JsonObject;
    extra.setAttribute('aria-invalid', `${isExtraWrong}`);
    setText(extraProblem, isExtraWrong ? 'This is no JSON object.' : '');
    onChange();
  };

  const element = h(
    'div',
    { class: 'settings' },
    field('System', system),
    h(
      'div',
      { class: 'pair' },
      field('Max tokens', maxTokens),
      field('Temperature', temperature),
      h('label', { class: 'check' }, stream, 'Stream'),
    ),
    h(
      'details',
      { class: 'more' },
      h('summary', {}, 'More fields'),
      field('More fields (JSON)', extra),
      extraProblem,
      h('p', { class: 'hint' }, 'Laid over the body: tools, reasoning and all else that the protocol knows.'),
    ),
  );
  return {
    element,
    read: () => ({
      system: system.value,
      maxTokens: numberIn(maxTokens),
      temperature: numberIn(temperature),
      stream: stream.checked,
      extra: fields,
    }),
    problem: () => {
      if (isExtraWrong) return 'The field “More fields” holds no JSON object.';
      if (!maxTokens.validity.valid) return 'Max tokens must be a whole number of at least 1.';
      // What models take differs, so the gateway says what is too much.
      return temperature.validity.badInput ? 'Temperature must be a number.' : null;
    },
  };
}
