import { dayMs, dayOf } from '../usage/budget.js';
import type { UsageFilter, UsageGrouping } from '../usage/queries.js';
import { invalid } from './answer.js';

/*
 * Parses the query of a usage request. Everything here throws a `GatewayError` of status 400 that names the wrong
 * parameter.
 */

/** Days of a report without a start, including its last day. */
const usualDays = 30;

const groupings: readonly UsageGrouping[] = ['day', 'key', 'model'];

/** Refuses unknown and repeated parameters. */
export function checkNames(query: URLSearchParams, known: readonly string[]): void {
  for (const name of new Set(query.keys())) {
    if (!known.includes(name))
      throw invalid(name, `There is no parameter '${name}'; there are ${known.join(', ')}.`);
    if (query.getAll(name).length > 1)
      throw invalid(name, `The parameter '${name}' is given more than once.`);
  }
}

/** Reads the filter: the calls of one key, of one model, or of all if neither is set. */
export function readFilter(query: URLSearchParams): UsageFilter {
  const [key, model] = [query.get('key'), query.get('model')];
  return { ...(key === null ? {} : { keyId: key }), ...(model === null ? {} : { model }) };
}

/** Reads the grouping of a report's rows. Defaults to days. */
export function readGroupings(query: URLSearchParams): readonly UsageGrouping[] {
  const given = query.get('by');
  if (given === null) return ['day'];
  if (given === '') return [];
  const names = given.split(',');
  const isKnown = (name: string): name is UsageGrouping => groupings.some((each) => each === name);
  if (!names.every(isKnown) || new Set(names).size < names.length)
    throw invalid('by', `'by' takes some of ${groupings.join(', ')} with commas between, each once.`);
  return names;
}

/** Reads a parameter with a fixed set of words. Defaults to the first. */
export function readChoice<Choice extends string>(
  query: URLSearchParams,
  name: string,
  choices: readonly [Choice, ...Choice[]],
): Choice {
  const given = query.get(name);
  if (given === null) return choices[0];
  const choice = choices.find((each) => each === given);
  if (choice === undefined) throw invalid(name, `'${name}' is one of ${choices.join(', ')}.`);
  return choice;
}

/** An interval in Unix milliseconds, excluding `end`. */
interface Stretch {
  readonly start: number;
  readonly end: number;
}

/** Accepted form of a time parameter. */
interface TimeForm {
  readonly words: string;
  /** @returns null if the text has another form */
  read(text: string): Stretch | null;
}

const dayForm = /^\d{4}-\d\d-\d\d$/;
const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** A whole day. */
export const dayOnly: TimeForm = {
  words: "a day in UTC such as '2026-03-09'",
  read(text) {
    const start = dayForm.test(text) ? Date.parse(text) : Number.NaN;
    // Some runtimes parse the thirtieth of February as the second of March.
    return Number.isNaN(start) || dayOf(start) !== text ? null : { start, end: start + dayMs };
  },
};

/** A whole day, or a moment. */
export const dayOrTime: TimeForm = {
  words: `${dayOnly.words}, or a time such as '2026-03-09T12:00:00Z'`,
  read(text) {
    const at = timeForm.test(text) ? Date.parse(text) : Number.NaN;
    return Number.isNaN(at) ? dayOnly.read(text) : { start: at, end: at };
  },
};

/** Reads the range from the start of `from` to the end of `to`. Defaults to the last thirty days. */
export function readRange(
  query: URLSearchParams,
  form: TimeForm,
): { readonly from: Stretch; readonly to: Stretch } {
  const readAt = (name: string, usual: number): Stretch => {
    const text = query.get(name);
    const stretch = form.read(text ?? dayOf(usual));
    if (stretch === null) throw invalid(name, `'${name}' is ${form.words}.`);
    return stretch;
  };
  const to = readAt('to', Date.now());
  const from = readAt('from', to.end - usualDays * dayMs);
  if (from.start >= to.end) throw invalid('from', "'from' does not come before the end of 'to'.");
  return { from, to };
}
