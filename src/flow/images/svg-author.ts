import { GatewayError } from '../../errors.js';
import { isAuthorField, refuseUnclearAuthor } from '../../protocols/images/svg-author.js';
import { OPEN_BRACE, OPEN_BRACKET } from '../../wire/bytes.js';
import { parseJson, wrongValue } from '../../wire/json.js';
import { findValues, type Span } from '../../wire/json-scan.js';
import { skipSpace } from '../../wire/json-skip.js';
import { WholeForm } from '../body/whole-form.js';
import type { ResolvedCall } from '../call.js';
import { innerModel } from '../inner-model.js';

/** A name in the body, with the function that writes another in its place. */
interface NamedAuthor extends Span {
  readonly name: string;
  readonly at: string;
  readonly write: (name: string) => string;
}

const asWritten = (name: string): string => name;

/**
 * Writes the upstream's name of the model that is to write an SVG into the body of a call for images.
 * @returns whether the body has changed, and has to be read again
 * @throws {GatewayError} `model_not_found` for a model that the key may not use, and of status 400 for what names a model in
 * another form
 */
export function writeSvgAuthor(call: ResolvedCall): boolean {
  const body = call.wholeBody();
  const pieces: Buffer[] = [];
  let from = 0;
  for (const { name, at, start, end, write } of authorsIn(call, body)) {
    const there = nameAtUpstream(call, name, at);
    if (there === name) continue;
    pieces.push(body.subarray(from, start), Buffer.from(write(there)));
    from = end;
  }
  if (pieces.length === 0) return false;
  call.body = Buffer.concat([...pieces, body.subarray(from)]);
  return true;
}

/** Judged at each upstream. The first one's name is written, since nearly all targets have it. */
function nameAtUpstream({ key, model, running }: ResolvedCall, name: string, at: string): string {
  const names = model.targets.map(({ upstream }) => {
    const there = innerModel(name, at, 'write the SVG', { snapshot: running.snapshot, key, upstream });
    if (there instanceof GatewayError) throw there;
    return there;
  });
  return names[0] ?? name;
}

function authorsIn({ upload }: ResolvedCall, body: Buffer): readonly NamedAuthor[] {
  if (upload instanceof WholeForm) {
    return upload.parts.flatMap(({ name, data }) => {
      refuseUnclearAuthor(name);
      if (!isAuthorField(name)) return [];
      const start = data.byteOffset - body.byteOffset;
      return [{ name: data.toString('utf8'), at: name, start, end: start + data.length, write: asWritten }];
    });
  }
  const [svg = null] = findValues(body, skipSpace(body, 0), ['svg']);
  // In a form, its elements would be fields like those of an object.
  if (svg !== null && body[svg.start] === OPEN_BRACKET) throw wrongValue('svg', 'an object');
  if (svg === null || body[svg.start] !== OPEN_BRACE) return [];
  const [model = null] = findValues(body, svg.start, ['model']);
  const name = model === null ? null : parseJson(body.toString('utf8', model.start, model.end));
  if (model === null || name === null || name === '') return [];
  if (typeof name !== 'string') throw wrongValue('svg.model', 'the name of a model');
  return [{ ...model, name, at: 'svg.model', write: JSON.stringify }];
}
