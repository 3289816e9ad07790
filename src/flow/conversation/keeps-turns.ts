import { randomBytes } from 'node:crypto';
import type { Model, Target } from '../../config/types.js';
import type { ConversationRules, Keep } from '../../conversation/kept-turns.js';
import type { Endpoint } from '../../protocols/endpoint.js';
import type { AnswerWatch } from '../../stream/observe.js';
import { answerId, type Call } from '../call.js';
import type { Services } from '../services.js';
import { keyMark } from '../upstream/key-mark.js';
import { writeInBackground } from './records.js';

/** Added to ids: call ids are sequential, and users behind one key must not guess what others have kept. */
const secretDigits = 24;
/** Unused random hexadecimal digits, drawn in bulk: random bytes cost as much for one id as for many. */
let secrets = '';
const secretsBytes = 6144;

function newSecret(): string {
  if (secrets.length < secretDigits) secrets = randomBytes(secretsBytes).toString('hex');
  const secret = secrets.slice(0, secretDigits);
  secrets = secrets.slice(secretDigits);
  return secret;
}

/** An attempt at a target that takes the call untranslated. */
export interface NativeAttempt {
  readonly endpoint: Endpoint;
  readonly target: Target;
  /** The upstream key that will be used; null if unknown, or if there is none. */
  readonly apiKey: string | null;
}

/**
 * Whether a target keeps the turns of an endpoint's calls itself: it takes them untranslated, and the config does not say
 * that it ignores references to earlier turns.
 */
export function keepsTurns({ native, translation }: Target, { protocol, conversation }: Endpoint): boolean {
  return native.has(protocol) && (translation.threads || conversation?.withoutTurns === undefined);
}

/** Whether calls of a model can go to more than one account: several targets, or several keys of the only one. */
export function hasSeveralAccounts({ targets }: Model): boolean {
  const [first] = targets;
  return targets.length > 1 || (first !== undefined && first.upstream.apiKeys.length > 1);
}

/** How the turn that an answer ends is kept. */
interface TurnKeeping {
  /** The records that the answer's end has to wait for; null if there are none. */
  readonly keep: Keep | null;
  readonly watch: AnswerWatch | null;
  /** Called with the last bytes of the answer. */
  readonly watchEnd: ((end: Buffer) => void) | null;
  /** Called with all of it. */
  readonly watchAll: ((run: Buffer, isStream: boolean) => void) | null;
}

export const nothingKept: TurnKeeping = { keep: null, watch: null, watchEnd: null, watchAll: null };

/** Whether a call has tools that run at its upstream in something that the upstream keeps. */
export function usesUpstreamState(call: Call, { heldByItems }: ConversationRules): boolean {
  if (heldByItems === undefined) return false;
  const { tools, itemTools } = call.checkedBody();
  const body = call.wholeBody();
  return heldByItems.isUsed(body, tools === null ? null : body.subarray(tools.start, tools.end), itemTools);
}

/**
 * How the turn of an untranslated call is kept: here, or at its target. In the second case the target is recorded as its
 * holder, since later calls could go to another target, the answer can be requested by its id, and no other key may
 * continue from it. Anything else that a target keeps is recorded in either case.
 * @param conversation the endpoint's rules
 */
export function turnKeeping(
  services: Services,
  call: Call,
  { endpoint, target, apiKey }: NativeAttempt,
  conversation: ConversationRules,
): TurnKeeping {
  if (call.running.snapshot.conversations === null) return nothingKept;
  const { upstream, model } = target;
  const holder = () => ({ upstream: upstream.name, model, key: keyMark(apiKey) });
  const { heldAtEnd } = conversation;
  const watchEnd =
    heldAtEnd === null
      ? null
      : (end: Buffer): void => {
          const record = heldAtEnd(end, holder);
          if (record !== null) writeInBackground(services, call, [record]);
        };
  const { heldByItems } = conversation;
  const watchAll =
    heldByItems === undefined || !usesUpstreamState(call, conversation)
      ? null
      : (run: Buffer, isStream: boolean): void =>
          writeInBackground(services, call, heldByItems.records(run, isStream, holder()));
  const beside = { ...nothingKept, watchEnd, watchAll };
  if (!keepsTurns(target, endpoint)) return { ...beside, keep: answerKeep(call, conversation, true) };
  const isOnly = call.model !== null && !hasSeveralAccounts(call.model);
  const held = mayBeKept(call, conversation) ? conversation.hold(call.wholeBody(), holder(), isOnly) : null;
  if (held === null) return beside;
  const { keep, watch } = held;
  if (watch === null) return { ...beside, keep };
  return {
    ...beside,
    keep,
    watch: (piece, isStream) => {
      const records = watch(piece, isStream);
      if (records !== null) writeInBackground(services, call, records);
      return records !== null;
    },
  };
}

/**
 * What to keep of an answer whose upstream keeps nothing; null for nothing. Over a WebSocket only the socket's own
 * history is kept.
 * @param isPassed whether the answer passes untranslated
 */
export function answerKeep(call: Call, conversation: ConversationRules, isPassed: boolean): Keep | null {
  const { recalled, running, socketCall } = call;
  const settings = running.snapshot.conversations;
  if (settings === null || socketCall !== null || !mayBeKept(call, conversation)) return null;
  return conversation.keep({
    body: call.wholeBody(),
    recalled,
    newId: () => answerId(call) + newSecret(),
    isPassed,
    recordBytes: settings.recordBytes,
  });
}

/** Whether the request permits its answer to be continued. */
function mayBeKept(call: Call, { isAsked }: ConversationRules): boolean {
  return !isAsked || call.recalled !== null || call.checkedBody().goesOn;
}
