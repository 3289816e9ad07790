import { RequestError } from '../http/request-error.js';

/** One wish about how the simulator shall answer, as the request spells it; `faults.ts` lists them all. */
export interface Directive {
  readonly name: string;
  /** What follows the name's `=`, or an empty string. */
  readonly value: string;
  readonly options: ReadonlyMap<string, string>;
  /** The words as they came: what `times=N` counts by. */
  readonly source: string;
}

/** The refusal of a directive that the simulator does not know or cannot read. */
export function directiveError(message: string): RequestError {
  return new RequestError(400, message, null, 'unknown_fault');
}

/** Reads the header form: `status=429 retry-after=7; latency=20`. */
export function headerDirectives(header: string | undefined): Directive[] {
  return (header ?? '').split(';').flatMap((source) => directive(source));
}

/**
 * Reads the directives that a user text begins with: `[[fault:status=429 retry-after=7]] Hello`.
 * @returns them, and the text without them.
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

/** The first directive of a name. */
export function findDirective(directives: readonly Directive[], name: string): Directive | undefined {
  return directives.find((directive) => directive.name === name);
}

/**
 * The number that a directive carries as `NAME=number`, or in the option that has a name of its own for it.
 * @throws RequestError when it is not a number from zero on.
 */
export function directiveValue(directive: Directive, option: string, fallback: number): number {
  return numberIn(directive, option, directive.value || directive.options.get(option), fallback);
}

/**
 * The number in an option of a directive: `after=2`.
 * @throws RequestError when it is not a number from zero on.
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
 * A prompt can begin with more than `[[fault:…]]`, in any order and number:
 *
 * | text                         | what it asks for                                                                   |
 * |------------------------------|------------------------------------------------------------------------------------|
 * | `[[video:NAME=VALUE …]]`     | how a video task goes:                                                             |
 * |   `queued=MS`                | how long it waits                                                                  |
 * |   `running=MS`               | how long it takes after that                                                       |
 * |   `fail=WORD`                | that it fails when it would complete: `content_policy`, `input_policy`, any other  |
 * |   `bytes=N`                  | a video of N bytes of noise                                                        |
 * |   `http=N`                   | vendorj: the HTTP status of answers about the failed task                          |
 * | `[[poll:FAULT]]`             | faults of answers about the task, as the header has them; `times` counts per task  |
 * | `[[content:FAULT]]`          | faults where the bytes of the video or the image are asked for, likewise           |
 */

/** What a prompt asks the simulator for, and the prompt without it. */
export interface PromptWishes {
  readonly faults: readonly Directive[];
  readonly video: ReadonlyMap<string, string>;
  /** As the header has them. */
  readonly poll: string;
  readonly content: string;
  readonly rest: string;
}

const videoOptions = ['queued', 'running', 'fail', 'bytes', 'http'];

/**
 * Reads what a prompt begins with.
 * @throws RequestError for what cannot be wished of a video.
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
 * Faults that were wished for when something was made, for a request about it.
 * @param owner tells them from the same wishes elsewhere, where they are counted
 */
export function laterFaults(wishes: string, owner: string): Directive[] {
  return headerDirectives(wishes).map((directive) => ({
    ...directive,
    source: `${owner} ${directive.source}`,
  }));
}
