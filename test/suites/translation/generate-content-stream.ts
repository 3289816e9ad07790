import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { readData, readEvents } from '../../support/events.js';
import { at, listAt, numberAt, textAt } from '../../support/json.js';
import { rule } from './client.js';

interface OpenCandidate {
  readonly parts: JsonObject[];
  readonly chosen: JsonObject[];
  finishReason: string;
}

/**
 * Assembles the blocks of a generateContent stream, and checks the protocol's rules.
 * @returns the part of the answer that arrived, and the error block that ended it, if any
 */
export function assembleContent(text: string): { readonly response: JsonObject; readonly error: unknown } {
  const events = readEvents(text);
  rule(
    events.every(({ event }) => event === null),
    'no event line',
  );
  const blocks = events.map(readData);
  const error = blocks.find((block) => at(block, 'error') !== undefined) ?? null;
  rule(error === null || error === blocks.at(-1), 'nothing follows an error');
  const good = error === null ? blocks : blocks.slice(0, -1);
  const candidates = new Map<number, OpenCandidate>();
  let usageMetadata: unknown;
  for (const block of good) {
    for (const name of ['responseId', 'modelVersion']) {
      rule(
        textAt(block, name) !== '' && at(block, name) === at(good[0], name),
        `every block has the same ${name}`,
      );
    }
    rule(
      candidates.size === 0 || ![...candidates.values()].every(hasEnded),
      'nothing follows the finishReason',
    );
    usageMetadata = at(block, 'usageMetadata') ?? usageMetadata;
    for (const candidate of listAt(block, 'candidates')) takeCandidate(candidate, candidates);
  }
  if (error === null) {
    rule(candidates.size > 0 && [...candidates.values()].every(hasEnded), 'it ends with a finishReason');
    rule(isObject(at(good.at(-1), 'usageMetadata')), 'the last block has the usage');
  }
  const whole = [...candidates].map(([index, { parts, finishReason, chosen }]) => ({
    content: { role: 'model', parts },
    finishReason,
    logprobsResult: { chosenCandidates: chosen },
    index,
  }));
  return { response: { candidates: whole, usageMetadata }, error };
}

function hasEnded({ finishReason }: OpenCandidate): boolean {
  return finishReason !== '';
}

function takeCandidate(candidate: JsonObject, candidates: Map<number, OpenCandidate>): void {
  const index = numberAt(candidate, 'index');
  const open = candidates.get(index) ?? { parts: [], chosen: [], finishReason: '' };
  rule(!hasEnded(open), 'nothing follows the finishReason of a candidate');
  candidates.set(index, open);
  for (const part of listAt(candidate, 'content', 'parts')) takePart(part, open.parts);
  open.chosen.push(...listAt(candidate, 'logprobsResult', 'chosenCandidates'));
  open.finishReason = textAt(candidate, 'finishReason');
}

/** Empty texts mean nothing, unless they carry a signature. */
function takePart(part: JsonObject, parts: JsonObject[]): void {
  if (part.functionCall !== undefined) {
    rule(textAt(part, 'functionCall', 'name') !== '', 'a functionCall has a name');
    rule(isObject(at(part, 'functionCall', 'args') ?? {}), 'a functionCall comes whole');
  }
  if (part.text !== '' || part.thoughtSignature !== undefined) parts.push(part);
}
