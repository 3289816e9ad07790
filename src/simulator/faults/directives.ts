import { RequestError } from '../http/request-error.js';

/** A directive of a request for how the simulator answers; `faults.ts` lists all of them. */
export interface Directive {
  readonly name: string;
  /** The text after the name's `=`, or an empty string. */
  readonly value: string;
  readonly options: ReadonlyMap<string, string>;
  /** The text of the directive, by which `times=N` counts. */
  readonly source: string;
}

/** The error for an unknown or invalid directive. */
export function directiveError(message: string): RequestError {
  return new RequestError(400, message, null, 'unknown_fault');
}

/** Parses the header form: `status=429 retry-after=7; latency=20`. */
export function headerDirectives(header: string | undefined): Directive[] {
  return (header ?? '').split(';').flatMap((source) => directive(source));
}

/**
 * Parses the directives at the start of a user text: `[[fault:status=429 retry-after=7]] Hello`.
 * @returns the directives, and the text without them.
 */
export function textDirectives(text: string): { readonly directives: Directive[]; readonly rest: string } {
  const pattern = /\s*\[\[fault:([^\]]*)\]\]\s*/y;
  const directives: Directive[] = [];
  let end = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    directives.push(...directive(match[1] ?? ''));
    end = pattern.lastIndex;
  }
  return { directives, rest: text.slice(end) };
}

/** The first directive with a name. */
export function findDirective(directives: readonly Directive[], name: string): Directive | undefined {
  return directives.find((directive) => directive.name === name);
}

/**
 * The number of a directive, given as `NAME=number` or in the named option.
 * @throws RequestError if it is not a non-negative number.
 */
export function directiveValue(directive: Directive, option: string, fallback: number): number {
  return numberIn(directive, option, directive.value || directive.options.get(option), fallback);
}

/**
 * The number in an option of a directive: `after=2`.
 * @throws RequestError if it is not a non-negative number.
 */
export function directiveOption(directive: Directive, option: string, fallback: number): number {
  return numberIn(directive, option, directive.options.get(option), fallback);
}

function numberIn(directive: Directive, option: string, text: string | undefined, fallback: number): number {
  const number = text === undefined || text === '' ? fallback : Number(text);
  if (!Number.isFinite(number) || number < 0) {
    throw directiveError(`The directive "${directive.source}" needs a number for "${option}".`);
  }
  return number;
}

function directive(source: string): Directive[] {
  const [head, ...rest] = source.trim().split(/\s+/);
  if (head === undefined || head === '') {
    return [];
  }
  const [name, value] = halves(head);
  return [{ name, value, options: new Map(rest.map(halves)), source: source.trim() }];
}

function halves(word: string): [string, string] {
  const at = word.indexOf('=');
  return at < 0 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)];
}

/*
 * A prompt can begin with further directives in addition to `[[fault:…]]`, in any order and number:
 *
 * | text                         | effect                                                                             |
 * |------------------------------|------------------------------------------------------------------------------------|
 * | `[[video:NAME=VALUE …]]`     | course of a video task:                                                            |
 * |   `queued=MS`                | duration of its queueing                                                           |
 * |   `running=MS`               | duration of its work                                                               |
 * |   `fail=WORD`                | fails when it would complete: `content_policy`, `input_policy`, or any other word  |
 * |   `bytes=N`                  | a video of N bytes of noise                                                        |
 * |   `http=N`                   | vendorj: the HTTP status of answers about the failed task                          |
 * | `[[poll:FAULT]]`             | faults of answers about the task, in the header form; `times` counts for each task |
 * | `[[content:FAULT]]`          | faults of downloads of the video or the image, likewise                            |
 */

/** The directives of a prompt, and the prompt without them. */
export interface PromptWishes {
  readonly faults: readonly Directive[];
  readonly video: ReadonlyMap<string, string>;
  /** In the header form. */
  readonly poll: string;
  readonly content: string;
  readonly rest: string;
}

const videoOptions = ['queued', 'running', 'fail', 'bytes', 'http'];

/**
 * Parses the directives at the start of a prompt.
 * @throws RequestError for a directive that does not apply to videos.
 */
export function promptWishes(prompt: string): PromptWishes {
  const faults: Directive[] = [];
  const video = new Map<string, string>();
  const later: Record<'poll' | 'content', string[]> = { poll: [], content: [] };
  let rest = prompt;
  for (;;) {
    const found = textDirectives(rest);
    faults.push(...found.directives);
    rest = found.rest;
    const match = /^\s*\[\[(video|poll|content):([^\]]*)\]\]\s*/.exec(rest);
    if (match === null) {
      return { faults, video, poll: later.poll.join(';'), content: later.content.join(';'), rest };
    }
    const [whole, kind, text = ''] = match;
    rest = rest.slice(whole.length);
    if (kind === 'video') {
      readVideo(text, video);
    } else {
      later[kind as 'poll' | 'content'].push(text);
    }
  }
}

function readVideo(text: string, video: Map<string, string>): void {
  for (const word of text.split(/\s+/).filter((one) => one !== '')) {
    const [name = '', value = ''] = word.split('=', 2);
    const holds = name === 'fail' ? /^\w+$/ : /^\d{1,15}$/;
    if (!videoOptions.includes(name) || !holds.test(value)) {
      throw directiveError(
        `"${word}" cannot be wished of a video. Possible are: ${videoOptions.join(', ')}.`,
      );
    }
    video.set(name, value);
  }
}

/**
 * The faults for a request about an object, as directed when the object was created.
 * @param owner separates their counts from those of the same directives elsewhere
 */
export function laterFaults(wishes: string, owner: string): Directive[] {
  return headerDirectives(wishes).map((directive) => ({
    ...directive,
    source: `${owner} ${directive.source}`,
  }));
}
