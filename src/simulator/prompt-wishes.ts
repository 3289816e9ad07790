import { type Directive, DirectiveError, headerDirectives, textDirectives } from './directives.js';

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
 * @throws DirectiveError for what cannot be wished of a video.
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
      throw new DirectiveError(
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
