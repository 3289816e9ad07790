import { ApiError } from '../../api.js';
import { openFormDialog } from '../../dialog.js';
import { h, setText } from '../../dom.js';
import { type FieldName, type FieldProblems, fieldMessage, fieldOf, type KeyFields } from './form.js';

export interface KeyDialogOptions {
  readonly title: string;
  readonly verb: string;
  readonly fields: KeyFields;
  /** Names of the groups of the config. */
  readonly groups: readonly string[];
  /** A key that there is keeps its id. */
  readonly isNew: boolean;
  /**
   * @returns what is wrong with the fields, or null when it is done
   * @throws {ApiError} told at its field, or above the buttons
   */
  submit(fields: KeyFields): Promise<FieldProblems | null>;
  /** What comes once it is done and the dialog is gone. */
  afterwards?(): void;
}

/** The dialog in which a key is made or changed. */
export function openKeyDialog(options: KeyDialogOptions): void {
  const { fields, isNew } = options;
  const problems = new Map<FieldName, HTMLElement>();
  const inputs = new Map<FieldName, HTMLElement>();

  const problemOf = (name: FieldName): HTMLElement => {
    const element = h('span', { class: 'problem', id: `key-${name}-problem` });
    problems.set(name, element);
    return element;
  };
  const register = <Input extends HTMLElement>(name: FieldName, input: Input): Input => {
    input.setAttribute('aria-describedby', `key-${name}-problem`);
    inputs.set(name, input);
    return input;
  };
  const text = (name: FieldName, properties: Partial<HTMLInputElement> = {}): HTMLInputElement =>
    register(
      name,
      h('input', {
        type: 'text',
        autocomplete: 'off',
        spellcheck: false,
        value: `${fields[name]}`,
        ...properties,
      } as object),
    );
  // A problem is beside the label and not in it: it is no part of the field's name.
  const field = (title: string, hint: string | null, input: HTMLElement, name: FieldName): HTMLElement =>
    h(
      'div',
      { class: 'field-with-problem' },
      h(
        'label',
        { class: 'field' },
        h('span', {}, title, hint === null ? null : h('small', { class: 'hint' }, ` ${hint}`)),
        input,
      ),
      problemOf(name),
    );

  const label = text('label', { maxLength: 200 });
  const id = text('id', { placeholder: 'made up' });
  const requests = text('requestsPerMinute', { inputMode: 'numeric', placeholder: 'no limit' });
  const tokens = text('tokensPerMinute', { inputMode: 'numeric', placeholder: 'no limit' });
  const concurrent = text('concurrent', { inputMode: 'numeric', placeholder: 'no limit' });
  const usd = text('usd', { inputMode: 'decimal', placeholder: 'no budget' });
  const expiresAt = text('expiresAt', { type: 'datetime-local', max: '9999-12-31T23:59' });
  const mayRoute = h('input', { type: 'checkbox', checked: fields.mayRoute });
  const per = h(
    'select',
    {},
    ...(['day', 'week', 'month'] as const).map((each) =>
      h('option', { value: each, selected: each === fields.per }, `a ${each}`),
    ),
  );
  const names = [...new Set([...options.groups, ...fields.groups])];
  const boxes = names.map((name) =>
    h('input', { type: 'checkbox', value: name, checked: fields.groups.includes(name) }),
  );

  const read = (): KeyFields => ({
    id: id.value,
    label: label.value,
    groups: boxes.filter(({ checked }) => checked).map(({ value }) => value),
    requestsPerMinute: requests.value,
    tokensPerMinute: tokens.value,
    concurrent: concurrent.value,
    usd: usd.value,
    per: per.value as KeyFields['per'],
    expiresAt: expiresAt.value,
    mayRoute: mayRoute.checked,
  });
  const tell = (found: FieldProblems): void => {
    for (const [name, element] of problems) setText(element, found[name] ?? '');
    for (const [name, input] of inputs) {
      if (found[name] === undefined) input.removeAttribute('aria-invalid');
      else input.setAttribute('aria-invalid', 'true');
    }
    const first = [...inputs.keys()].find((name) => found[name] !== undefined);
    if (first !== undefined) inputs.get(first)?.focus();
  };
  const submit = async (): Promise<boolean> => {
    tell({});
    try {
      const found = await options.submit(read());
      if (found !== null) tell(found);
      return found === null;
    } catch (error) {
      const name = error instanceof ApiError ? fieldOf(error.param) : null;
      if (name === null || !problems.has(name)) throw error;
      tell({ [name]: fieldMessage(error as ApiError) });
      return false;
    }
  };

  const groupList = h(
    'fieldset',
    { class: 'choices', tabIndex: -1 },
    h('legend', {}, 'Groups', h('small', { class: 'hint' }, ' say which models it may call')),
    ...boxes.map((box, index) => {
      const isGone = !options.groups.includes(names[index] as string);
      return h(
        'label',
        { class: 'check' },
        box,
        h('span', {}, `${names[index]}${isGone ? ' (not in the config)' : ''}`),
      );
    }),
    problemOf('groups'),
  );
  register('groups', groupList);
  openFormDialog(
    { title: options.title, verb: options.verb, submit, afterwards: () => options.afterwards?.() },
    h(
      'div',
      { class: 'fields' },
      field('Label', null, label, 'label'),
      isNew ? field('Id', 'in logs and reports', id, 'id') : null,
    ),
    groupList,
    h(
      'div',
      { class: 'fields' },
      field('Requests', 'a minute', requests, 'requestsPerMinute'),
      field('Tokens', 'a minute', tokens, 'tokensPerMinute'),
      field('Calls', 'at once', concurrent, 'concurrent'),
    ),
    h(
      'div',
      { class: 'fields' },
      field('Budget', 'in US dollars', usd, 'usd'),
      h('label', { class: 'field' }, h('span', {}, 'Budget period'), per),
    ),
    h(
      'div',
      { class: 'fields wide' },
      field('Expires', 'in UTC', expiresAt, 'expiresAt'),
      h(
        'label',
        { class: 'check' },
        mayRoute,
        h('span', {}, 'May choose targets', h('small', { class: 'hint' }, ' (x-gateway-target)')),
      ),
    ),
  );
  label.focus();
}
