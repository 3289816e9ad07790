import { randomBytes } from 'node:crypto';
import type { Model, Target } from '../../config/types.js';
import type { ConversationRules, Keep } from '../../conversation/kept-turns.js';
import type { Endpoint } from '../../protocols/endpoint.js';
import type { AnswerWatch } from '../../stream/observe.js';
import { answerId, type Call } from '../call.js';
import type { Services } from '../services.js';
import { keyMark } from '../upstream/key-mark.js';
import { noteRecords } from './records.js';

/** The ids of calls follow each other, and the users behind one key are not to guess what others have kept. */
const secretDigits = 24;
/** Hexadecimal digits that no id has yet: random bytes cost as much for one id as for many. */
let secrets = '';
const secretsBytes = 6144;

function newSecret(): string {
  if (secrets.length < secretDigits) secrets = randomBytes(secretsBytes).toString('hex');
  const secret = secrets.slice(0, secretDigits);
  secrets = secrets.slice(secretDigits);
  return secret;
}

/** A target that takes a call as it came. */
export interface NativeAttempt {
  readonly endpoint: Endpoint;
  readonly target: Target;
  /** The upstream's key that it will be asked with; null where that is not known, or there is none. */
  readonly apiKey: string | null;
}

/**
 * Whether a target keeps the turns of an endpoint's calls itself: it takes these as they come, and the config does not
 * say that it takes no notice of what they go on from.
 */
export function keepsTurns({ native, translation }: Target, { protocol, conversation }: Endpoint): boolean {
  return native.has(protocol) && (translation.threads || conversation?.withoutTurns === undefined);
}

/** Whether the calls of a model can go to more than one account: another target, or another key of the only one. */
export function hasChoice({ targets }: Model): boolean {
  const [first] = targets;
  return targets.length > 1 || (first !== undefined && first.upstream.apiKeys.length > 1);
}

/** What becomes of the turn that an answer ends. */
interface TurnKeeping {
  /** Waits for the answer's end, which waits for it; null where nobody has to wait. */
  readonly keep: Keep | null;
  readonly watch: AnswerWatch | null;
  /** Is shown the last bytes of the answer. */
  readonly watchEnd: ((end: Buffer) => void) | null;
  /** Is shown all of it. */
  readonly watchAll: ((run: Buffer, isStream: boolean) => void) | null;
}

export const nothingKept: TurnKeeping = { keep: null, watch: null, watchEnd: null, watchAll: null };

/** Whether a call has tools that run at its upstream in what that keeps. */
export function usesHeld(call: Call, { heldByItems }: ConversationRules): boolean {
  const { tools } = call.checkedBody();
  if (heldByItems === undefined || tools === null) return false;
  return heldByItems.isUsed(call.wholeBody().subarray(tools.start, tools.end));
}

/**
 * What becomes of the turn of a call that a target takes as it came: it is kept here, or where the target keeps it
 * itself, that it does is noted here: others could be asked, the answer can be asked for by its id, and no other key is to
 * go on from it. What else a target keeps is noted in either case.
 * @param conversation of the endpoint
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
          if (record !== null) noteRecords(services, call, [record]);
        };
  const { heldByItems } = conversation;
  const watchAll =
    heldByItems === undefined || !usesHeld(call, conversation)
      ? null
      : (run: Buffer, isStream: boolean): void =>
          noteRecords(services, call, heldByItems.records(run, isStream, holder()));
  const beside = { ...nothingKept, watchEnd, watchAll };
  if (!keepsTurns(target, endpoint)) return { ...beside, keep: answerKeep(call, conversation, true) };
  const isOnly = call.model !== null && !hasChoice(call.model);
  const held = mayBeKept(call, conversation) ? conversation.hold(call.wholeBody(), holder(), isOnly) : null;
  if (held === null) return beside;
  const { keep, watch } = held;
  if (watch === null) return { ...beside, keep };
  return {
    ...beside,
    keep,
    watch: (piece, isStream) => {
      const records = watch(piece, isStream);
      if (records !== null) noteRecords(services, call, records);
      return records !== null;
    },
  };
}

/**
 * What is kept of an answer whose upstream keeps nothing; null for nothing. Over a WebSocket its own history is all that
 * is kept.
 * @param isPassed the answer passes as the upstream gives it
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

/** Whether the request says that its answer may be gone on from. */
function mayBeKept(call: Call, { isAsked }: ConversationRules): boolean {
  return !isAsked || call.recalled !== null || call.checkedBody().goesOn;
}
