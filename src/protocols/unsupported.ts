import type { TargetOptions } from '../conversation/codec.js';
import type { ConversationRequest, TextProtocolName } from '../conversation/request.js';
import { isSetByClient, type Setting, settingName } from '../conversation/setting-names.js';
import type { GatewayError } from '../errors.js';
import { isObject, type JsonObject, memberError, nameOfType } from '../wire/json.js';

/** Returns the detail of an error message that names the type of the refused value. */
export function ofType(type: unknown): string {
  return `of type '${nameOfType(type)}'`;
}

/**
 * Returns the 400 for a setting that the upstream's protocol cannot express.
 * @param to the upstream's protocol
 * @param detail what exactly, if the name of the field does not say it: `with more than one answer`
 */
export function unsupportedSetting(
  request: Pick<ConversationRequest, 'from'>,
  setting: Setting,
  to: TextProtocolName,
  detail = '',
): GatewayError {
  return unsupportedAt(settingName(request.from, setting), to, detail);
}

/**
 * Returns the 400 for something in the client's body that the upstream's protocol cannot express.
 * @param at path in the client's body
 */
export function unsupportedAt(at: string, to: TextProtocolName, detail: string): GatewayError {
  const what = detail === '' ? '' : ` ${detail}`;
  return memberError(
    'unsupported_parameter',
    at,
    `'${at}'${what} cannot be translated for this model, whose upstream speaks the ${to} protocol. ` +
      'Leave it out, or use a model that is served in your own protocol.',
  );
}

/**
 * Returns the 400 for a field that no other protocol can express. It is thrown while a request is decoded for
 * translation: a model whose upstream speaks the client's protocol would take the field.
 * @param at path in the client's body
 */
export function untranslatable(at: string, detail = ''): GatewayError {
  const what = detail === '' ? '' : ` ${detail}`;
  return memberError(
    'unsupported_parameter',
    at,
    `'${at}'${what} is supported only by models whose upstream speaks your own protocol, which this one's does not.`,
  );
}

/**
 * Refuses what the upstream's protocol cannot express and the answer would be wrong without: settings that it lacks,
 * and tools that only another vendor can run, unless the target leaves these out.
 * @param lacked the settings, in the order in which they are checked
 * @throws {GatewayError} of status 400, naming the first of them
 */
export function refuseUnsupported(
  request: ConversationRequest,
  target: Pick<TargetOptions, 'hostedTools'>,
  to: TextProtocolName,
  lacked: readonly ('candidates' | 'logprobs' | 'logitBias')[],
): void {
  for (const setting of lacked) {
    const detail = setting === 'candidates' ? 'with more than one answer' : '';
    if (isSetByClient(request, setting)) throw unsupportedSetting(request, setting, to, detail);
  }
  const [hosted] = request.hostedTools;
  if (hosted !== undefined && target.hostedTools === 'reject')
    throw unsupportedAt(hosted.at, to, ofType(hosted.type));
}

/**
 * The members of an object that a decoder reads: each as a whole, or with the parts of it that are read. The elements
 * of a list are examined, not the list. What is read may depend on the object, such as on the type of a part.
 */
export type Shape = ReadonlyMap<string, Read>;
type Read = true | Shape | ((value: JsonObject) => Shape | true);

/** Anything deeper counts as read, since the nesting of a body has no limit. */
const deepest = 12;

/**
 * Finds members that a decoder does not read. A value that is null, false or empty is ignored.
 * @param body the client's
 * @param shape what its decoder reads
 * @param defaults values without an effect, by the names of their members
 * @returns names of members, from the body or from the innermost list on (`generationConfig.topK`, `cache_control`)
 */
export function unreadMembers(body: JsonObject, shape: Shape, defaults: JsonObject = {}): string[] {
  const unread: Unread = { names: null, defaults };
  look(body, shape, '', deepest, unread);
  return unread.names === null ? [] : [...unread.names];
}

/** What was found: nothing in most bodies. */
interface Unread {
  names: Set<string> | null;
  readonly defaults: JsonObject;
}

function look(value: unknown, read: Read, path: string, levels: number, unread: Unread): void {
  if (read === true || levels === 0) return;
  if (Array.isArray(value)) {
    for (const each of value) look(each, read, '', levels - 1, unread);
    return;
  }
  if (!isObject(value)) return;
  const shape = typeof read === 'function' ? read(value) : read;
  if (shape === true) return;
  for (const name of Object.keys(value)) {
    const inner = shape.get(name);
    if (inner === true) continue;
    const at = path === '' ? name : `${path}.${name}`;
    if (inner !== undefined) look(value[name], inner, at, levels - 1, unread);
    else if (saysSomething(value[name]) && unread.defaults[at] !== value[name]) {
      unread.names ??= new Set();
      unread.names.add(at);
    }
  }
}

function saysSomething(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

/**
 * @param members names of members that are read as a whole, members with what is read of each, and shapes whose members
 * are included
 */
export function shapeOf(...members: readonly (string | Readonly<Record<string, Read>> | Shape)[]): Shape {
  return new Map(members.flatMap(entriesOf));
}

function entriesOf(member: string | Readonly<Record<string, Read>> | Shape): (readonly [string, Read])[] {
  if (typeof member === 'string') return [[member, true]];
  return member instanceof Map ? [...member] : Object.entries(member);
}
