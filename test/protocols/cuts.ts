import { ownSecrets } from '../../src/config/snapshot.js';
import type { AnswerContext } from '../../src/conversation/codec.js';
import type { TextProtocolName } from '../../src/conversation/request.js';
import { unknownTokens } from '../../src/conversation/usage.js';
import { lastEvent } from '../../src/flow/answer/phase.js';
import { textEndpoints } from '../../src/protocols/text.js';
import { TranslatedTransform } from '../../src/stream/translate.js';
import { EventRuns } from '../../src/wire/sse.js';
import { plainContext, plainSource } from '../conversation/plain.js';
import type { Client } from '../suites/translation/client.js';
import { clients } from '../suites/translation/session.js';
import { places } from '../support/seed.js';

/** Who reads the translated stream, and in which form. */
export interface Reader {
  readonly name: string;
  readonly client: Client;
  readonly framing: AnswerContext['framing'];
}

/** A client of each protocol. */
export const readers = clients.map((client): Reader => ({ name: client.protocol, client, framing: 'sse' }));

/** Two readers of other protocols than the upstream's, and not the same two for each. */
export function others(upstream: TextProtocolName): readonly [Reader, Reader] {
  const own = readers.findIndex(({ name }) => name === upstream);
  return [readerAt(own + 1), readerAt(own + 2)];
}

function readerAt(place: number): Reader {
  return readers[place % readers.length] as Reader;
}

/** The way of one stream from the upstream's protocol to the reader's. */
export function transformOf(upstream: TextProtocolName, { client, framing }: Reader): TranslatedTransform {
  return new TranslatedTransform({
    upstreamCodec: textEndpoints[upstream].translation.codec,
    source: { ...plainSource, model: 'u' },
    clientCodec: textEndpoints[client.protocol].translation.codec,
    context: { ...plainContext, framing },
    restorer: null,
    inputEstimate: 5,
    tokens: unknownTokens,
    keep: null,
    secrets: ownSecrets([], []),
  });
}

/** What comes of a stream whose bytes arrive in these pieces, by the steps that the relay takes. */
export function translated(pieces: Iterable<Buffer>, transform: TranslatedTransform): string {
  const runs = new EventRuns(transform.eventBytes);
  let out = '';
  let judged = false;
  const isOver = (): boolean => transform.failure !== null || transform.isComplete;
  const take = (run: Buffer | null): void => {
    if (run === null) return;
    if (!judged) {
      const verdict = transform.judge(run);
      if (verdict === 'silence') return;
      if (verdict !== 'meaningful') throw verdict;
      judged = true;
    }
    // Valid until the next call only: taken over at once, a byte a character.
    out += transform.pass(run).toString('latin1');
  };
  for (const piece of pieces) {
    take(runs.push(piece));
    if (isOver()) break;
  }
  if (!isOver()) {
    const last = lastEvent(runs);
    if (last !== null) take(last);
  }
  if (!isOver()) out += transform.end().last?.toString('latin1') ?? '';
  // Two passes over a stream may end in different seconds.
  out = out.replace(/"completed_at":\d+/g, '"completed_at":1');
  const { passedError: error, usage } = transform;
  return `${out}\n${JSON.stringify({ usage, error: error?.message ?? null })}`;
}

/** The bytes, each as a piece of its own. */
export function* singleBytes(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at++) yield bytes.subarray(at, at + 1);
}

/**
 * Cuts of one pass over a stream: far enough from each other that no event but a very long one has two, and so many
 * that a pass for each byte of the stream does not take the square of its length.
 */
const cutsOfPass = 4;

/**
 * Where a stream can be cut so that something else comes out than from the whole, or `every byte`. Each place is cut
 * once, together with those a quarter of the stream away.
 */
export function wrongCuts(bytes: Buffer, reader: Reader, upstream: TextProtocolName): string[] {
  const translate = (pieces: Iterable<Buffer>): string => translated(pieces, transformOf(upstream, reader));
  const whole = translate([bytes]);
  const wrong = translate(singleBytes(bytes)) === whole ? [] : ['every byte'];
  const distance = Math.ceil(bytes.length / cutsOfPass);
  for (const first of places(1, distance + 1)) {
    const cuts: number[] = [];
    for (let cut = first; cut < bytes.length; cut += distance) cuts.push(cut);
    const pieces = [0, ...cuts].map((start, index) => bytes.subarray(start, cuts[index]));
    if (translate(pieces) !== whole) wrong.push(cuts.join(', '));
  }
  return wrong;
}
