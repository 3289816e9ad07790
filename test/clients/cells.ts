import { type Test, t } from 'tap';
import type { TextProtocolName } from '../../src/conversation/request.js';
import { pixel } from '../suites/translation/image.js';
import { startStrictStage } from '../support/strict-upstream/stage.js';
import { textProtocols } from '../support/translated.js';

/** How a client is used in a conversation. */
export interface SessionOptions {
  /** Base of the gateway's URLs. */
  readonly url: string;
  readonly stream: boolean;
  /** Reasoning is asked for, in the client's own words. */
  readonly thinks: boolean;
  /** Hears each piece of text that the client gives while its answer comes. */
  readonly onText?: (piece: string) => void;
}

/** What a client did that it should not have: no error of its own, which some cells expect. */
export class CellFault extends Error {
  override readonly name = 'CellFault';
}

/** A conversation, in whose turns the client calls `get_weather` as often as the model asks for it. */
export interface Session {
  /**
   * @param image a PNG in base64
   * @returns the text of the last answer of the turn
   */
  say(text: string, image?: string): Promise<string>;
}

/** A client in one version. */
export interface ClientLine {
  readonly name: string;
  /** The kinds of upstreams that it is run on; all unless given. */
  readonly wires?: readonly TextProtocolName[];
  open(options: SessionOptions): Session;
}

export const weatherTool = {
  name: 'get_weather',
  description: 'The weather of a city.',
  schema: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
} as const;

/** What the tool gives. */
export function weather({ city }: { readonly city: string }): string {
  return `sunny in ${city}`;
}

/** No turn of a cell has more calls of the model. */
export const mostSteps = 6;

/** Names that some clients go by, and one that none knows. */
const models = ['m', 'gpt-6-sol', 'claude-sonnet-5', 'gemini-3.8-flash'];

/** Texts that a client ends with, by cell. */
const endings: Readonly<Record<string, string>> = {
  tool: 'The tools said: sunny in Rome.',
  tools: 'The tools said: sunny in Rome, sunny in Oslo.',
  chain: 'The tools said: sunny in Rome, sunny in Oslo, sunny in Lima.',
  thinking: 'The tools said: sunny in Rome, sunny in Oslo.',
  image: '1 image seen.',
};

/** A cell: what it is called, whether it streams, and what was wrong, or null. */
interface Played {
  readonly name: string;
  readonly wrong: string | null;
}

async function ended(name: string, turns: () => Promise<string>, expected: string): Promise<Played> {
  try {
    const text = await turns();
    return { name, wrong: text.endsWith(expected) ? null : `it said ${JSON.stringify(text)}` };
  } catch (fault) {
    return { name, wrong: wordsOf(fault) };
  }
}

/** What an error of a client says, with what it keeps in members. */
function wordsOf(fault: unknown): string {
  const { responseBody, status, statusCode } = Object(fault) as Record<string, unknown>;
  return `${fault} ${responseBody ?? ''} ${status ?? statusCode ?? ''}`.slice(0, 600);
}

/** The conversations of a line, one after the other. */
async function playAll(line: ClientLine, url: string): Promise<readonly Played[]> {
  const played: Played[] = [];
  for (const stream of [false, true]) {
    const open = (thinks = false) => line.open({ url, stream, thinks });
    const mode = stream ? 'streamed' : 'whole';
    const name = stream ? 'stream' : 'text';
    played.push(await ended(name, () => open().say(`cell:${name}`), `The answer to ${name}.`));
    for (const [cell, ending] of Object.entries(endings)) {
      const image = cell === 'image' ? pixel : undefined;
      const session = open(cell === 'thinking');
      played.push(await ended(`${cell}, ${mode}`, () => session.say(`cell:${cell}`, image), ending));
      // The history with its calls and reasoning is taken once more.
      const again = 'Earlier I said:';
      played.push(
        await ended(
          `again after ${cell}, ${mode}`,
          async () => {
            const text = await session.say('cell:again');
            return text.includes(ending) && text.startsWith(again) ? again : text;
          },
          again,
        ),
      );
    }
  }
  return played;
}

/** A stream that breaks off gives its reader some text first, and ends in an error of the client's. */
async function playCut(line: ClientLine, url: string): Promise<string> {
  let heard = '';
  const onText = (piece: string): void => {
    heard += piece;
  };
  try {
    const text = await line.open({ url, stream: true, thinks: false, onText }).say('cell:cut');
    return `a clean end after ${JSON.stringify(text)}`;
  } catch (fault) {
    if (fault instanceof CellFault || /AssertionError|TypeError: Cannot/.test(String(fault)))
      return wordsOf(fault);
    return heard === '' ? `no text before ${wordsOf(fault)}` : 'text and an error';
  }
}

/** @returns the status that the client tells */
async function playLimited(line: ClientLine, url: string): Promise<unknown> {
  try {
    return await line.open({ url, stream: false, thinks: false }).say('cell:limited');
  } catch (fault) {
    const { status, statusCode, lastError } = Object(fault) as Record<string, unknown>;
    return status ?? statusCode ?? Object(lastError).statusCode ?? wordsOf(fault);
  }
}

/** A test for a client, which plays every cell on each kind of upstream. Each is an assertion with its name. */
export function testLine(line: ClientLine): void {
  t.jobs = 3;
  void t.test(line.name, { buffered: true }, (t) => playCells(t, line));
}

async function playCells(t: Test, line: ClientLine): Promise<void> {
  t.jobs = textProtocols.length;
  const played = (line.wires ?? textProtocols).map((wire) =>
    t.test(`${line.name} on ${wire}`, { buffered: true }, async (t) => {
      const { url, upstream } = await startStrictStage(t, wire, { models });
      for (const { name, wrong } of await playAll(line, url)) t.equal(wrong, null, name);
      t.equal(await playCut(line, url), 'text and an error', 'cut');
      const broken = upstream.heard.map((heard) => heard.broken).filter((words) => words !== null);
      t.strictSame([...new Set(broken)], [], 'the upstream was sent nothing that it refuses');
      // A gateway of its own: the target is let alone after that for a while.
      const limited = await startStrictStage(t, wire, { models });
      t.equal(await playLimited(line, limited.url), 429, 'limited');
    }),
  );
  await Promise.all(played);
}
