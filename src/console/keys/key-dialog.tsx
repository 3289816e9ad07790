import { type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { ApiError } from '../api.js';
import { FormDialog } from '../dialog.js';
import { type FieldName, type FieldProblems, fieldMessage, fieldOf, type KeyFields } from './form.js';

interface KeyDialogProps {
  readonly title: string;
  readonly verb: string;
  /** Initial values of the fields. */
  readonly fields: KeyFields;
  /** Names of the groups of the config. */
  readonly groups: readonly string[];
  /** Whether the id can be set: an existing key keeps its id. */
  readonly isNew: boolean;
  /**
   * @returns the problems of the fields, or null on success
   * @throws {ApiError} shown at its field, or above the buttons
   */
  readonly submit: (fields: KeyFields) => Promise<FieldProblems | null>;
  readonly onClosed: () => void;
}

/** The dialog that creates or changes a key. */
export function KeyDialog({ title, verb, fields: first, groups, isNew, submit, onClosed }: KeyDialogProps) {
  const fields = useSignal(first);
  const problems = useSignal<FieldProblems>({});
  const content = useRef<HTMLDivElement>(null);
  // Focuses the first field with a problem. The initial focus is set by the dialog itself, synchronously: a later one
  // would redirect what the reader has begun to type.
  useEffect(
    () => content.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(),
    [problems.value],
  );
  const send = async (): Promise<boolean> => {
    problems.value = {};
    try {
      const found = await submit(fields.value);
      if (found !== null) problems.value = found;
      return found === null;
    } catch (error) {
      const name = error instanceof ApiError ? fieldOf(error.param) : null;
      if (name === null || !isShown(name, isNew)) throw error;
      problems.value = { [name]: fieldMessage(error as ApiError) };
      return false;
    }
  };
  const text = { fields, problems };
  const number = { ...text, inputMode: 'numeric', placeholder: 'no limit' } as const;
  return (
    <FormDialog title={title} verb={verb} submit={send} onClosed={onClosed}>
      <div ref={content} class="dialog-fields">
        <div class="fields">
          <TextField {...text} name="label" title="Label" maxLength={200} />
          {isNew && (
            <TextField {...text} name="id" title="Id" hint="in logs and reports" placeholder="made up" />
          )}
        </div>
        <Groups {...text} offered={groups} first={first.groups} />
        <div class="fields">
          <TextField {...number} name="requestsPerMinute" title="Requests" hint="a minute" />
          <TextField {...number} name="tokensPerMinute" title="Tokens" hint="a minute" />
          <TextField {...number} name="concurrent" title="Calls" hint="at once" />
        </div>
        <div class="fields">
          <TextField
            {...text}
            name="usd"
            title="Budget"
            hint="in US dollars"
            inputMode="decimal"
            placeholder="no budget"
          />
          <Period fields={fields} />
        </div>
        <div class="fields wide">
          <TextField
            {...text}
            name="expiresAt"
            title="Expires"
            hint="in UTC"
            type="datetime-local"
            max="9999-12-31T23:59"
          />
          <label class="check">
            <input
              type="checkbox"
              checked={fields.value.mayRoute}
              onChange={({ currentTarget }) => change(fields, { mayRoute: currentTarget.checked })}
            />
            <span>
              May choose targets<small class="hint"> (x-gateway-target)</small>
            </span>
          </label>
        </div>
      </div>
    </FormDialog>
  );
}

/** Whether the problem of a field has a place to be shown. */
function isShown(name: FieldName, isNew: boolean): boolean {
  return name === 'id' ? isNew : name !== 'per' && name !== 'mayRoute';
}

function change(fields: Signal<KeyFields>, changed: Partial<KeyFields>): void {
  fields.value = { ...fields.value, ...changed };
}

interface FormState {
  readonly fields: Signal<KeyFields>;
  readonly problems: Signal<FieldProblems>;
}

type TextName = Exclude<FieldName, 'groups' | 'mayRoute' | 'per'>;

interface TextFieldProps extends FormState {
  readonly type?: 'text' | 'datetime-local';
  readonly inputMode?: 'numeric' | 'decimal';
  readonly max?: string;
  readonly maxLength?: number;
  readonly placeholder?: string;
  readonly name: TextName;
  readonly title: string;
  readonly hint?: string;
}

function TextField({ fields, problems, name, title, hint, type = 'text', ...attributes }: TextFieldProps) {
  return (
    <WithProblem name={name} problems={problems}>
      <label class="field">
        <span>
          {title}
          {hint !== undefined && <small class="hint">{` ${hint}`}</small>}
        </span>
        <input
          // TypeScript cannot type both kinds of field in one element.
          type={type as 'text'}
          autocomplete="off"
          spellcheck={false}
          {...attributes}
          value={fields.value[name]}
          aria-describedby={`key-${name}-problem`}
          aria-invalid={problems.value[name] !== undefined ? 'true' : undefined}
          onInput={({ currentTarget }) => change(fields, { [name]: currentTarget.value })}
        />
      </label>
    </WithProblem>
  );
}

interface WithProblemProps {
  readonly name: FieldName;
  readonly problems: Signal<FieldProblems>;
  readonly children: ComponentChildren;
}

/** Shows a problem beside the label, not in it, so that it is not part of the field's accessible name. */
function WithProblem({ name, problems, children }: WithProblemProps) {
  return (
    <div class="field-with-problem">
      {children}
      <span class="problem" id={`key-${name}-problem`}>
        {problems.value[name]}
      </span>
    </div>
  );
}

function Period({ fields }: Pick<FormState, 'fields'>) {
  return (
    <label class="field">
      <span>Budget period</span>
      <select
        value={fields.value.per}
        onChange={({ currentTarget }) => change(fields, { per: currentTarget.value as KeyFields['per'] })}
      >
        {(['day', 'week', 'month'] as const).map((each) => (
          <option key={each} value={each}>
            {`a ${each}`}
          </option>
        ))}
      </select>
    </label>
  );
}

interface GroupsProps extends FormState {
  readonly offered: readonly string[];
  /** The groups of the key, which may no longer be in the config. */
  readonly first: readonly string[];
}

function Groups({ fields, problems, offered, first }: GroupsProps) {
  const names = [...new Set([...offered, ...first])];
  const chosen = fields.value.groups;
  const toggle = (name: string, isChosen: boolean): void =>
    change(fields, { groups: names.filter((each) => (each === name ? isChosen : chosen.includes(each))) });
  return (
    <fieldset
      class="choices"
      tabIndex={-1}
      aria-describedby="key-groups-problem"
      aria-invalid={problems.value.groups !== undefined ? 'true' : undefined}
    >
      <legend>
        Groups<small class="hint"> say which models it may call</small>
      </legend>
      {names.map((name) => (
        <label key={name} class="check">
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={({ currentTarget }) => toggle(name, currentTarget.checked)}
          />
          <span>{offered.includes(name) ? name : `${name} (not in the config)`}</span>
        </label>
      ))}
      <span class="problem" id="key-groups-problem">
        {problems.value.groups}
      </span>
    </fieldset>
  );
}
