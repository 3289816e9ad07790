import type { ConversationSettings } from '../../config/types.js';
import type { ConversationRules, Recall, Recalled } from '../../conversation/kept-turns.js';
import { GatewayError, guard } from '../../errors.js';
import type { Endpoint } from '../../protocols/endpoint.js';
import { type CompiledSchema, validateBody } from '../../schema/accept.js';
import type { OwnedRecords } from '../../store/owned.js';
import { largeBytes } from '../body/intake.js';
import type { ResolvedCall } from '../call.js';
import type { Next } from '../limits/admit.js';
import { takeMemory } from '../memory-budget.js';
import { refusalOf, refuse } from '../refuse.js';
import type { Services } from '../services.js';
import { WaitingClient } from '../upstream/waiting-client.js';
import type { FoundValues } from './find-queue.js';
import { hasSeveralAccounts, keepsTurns, usesUpstreamState } from './keep.js';
import { noteStoreFault, unavailable } from './records.js';

/** Longer untranslated bodies are not searched for references to earlier turns, since references make bodies short. */
const longestSearched = 64 * 1024;
/** A conversation is in memory as record texts, as items, as one text, and as the body made of it. */
const copies = 4;

/** A call that may continue an earlier one. */
interface RecallOptions {
  readonly endpoint: Endpoint;
  /** The endpoint's rules. */
  readonly conversation: ConversationRules;
  readonly schema: CompiledSchema;
  /** The next phase, called with the whole request. */
  readonly next: Next<ResolvedCall>;
}

/**
 * Replaces a request's references to earlier turns by the turns that the gateway has kept, and finds the holders of
 * others. Runs before the limits are taken, so that these count the whole conversation.
 * @throws {GatewayError} of status 400 for an unreadable body, and whatever `next` throws synchronously; later errors are
 * answered here
 */
export function recall(services: Services, call: ResolvedCall, options: RecallOptions): void {
  const settings = call.running.snapshot.conversations;
  const { owned } = services;
  const isOn = settings !== null && owned !== null;
  const completes = mayComplete(call, options);
  const wanted =
    isOn && mayGoOn(call, options, completes)
      ? options.conversation.recall(call.wholeBody(), completes)
      : null;
  if (wanted === null || !isOn) options.next(services, call);
  else new Recalling(services, call, { options, settings, owned, wanted }).start();
}

/**
 * Whether an upstream may get a request as it is, and complete it by ids that are recorded here: those of models whose
 * calls can go to several accounts. Without one, nothing waits for the store.
 */
function mayComplete({ model }: ResolvedCall, { endpoint }: RecallOptions): boolean {
  return hasSeveralAccounts(model) && model.targets.some((target) => keepsTurns(target, endpoint));
}

/** Whether a request may refer to an earlier turn; any other proceeds immediately, at no cost. */
function mayGoOn(call: ResolvedCall, { endpoint, conversation }: RecallOptions, completes: boolean): boolean {
  const isNative = call.model.targets.every((target) => keepsTurns(target, endpoint));
  if (call.checkedBody().goesOn || usesUpstreamState(call, conversation)) return true;
  const { mayMention } = conversation;
  const body = call.wholeBody();
  const isShort = body.length <= longestSearched;
  return mayMention !== null && (!isNative || isShort) && mayMention(body, completes && isShort);
}

interface RecallingParts {
  readonly options: RecallOptions;
  readonly settings: ConversationSettings;
  readonly owned: OwnedRecords;
  readonly wanted: Recall;
}

/** A call that waits for the store. */
class Recalling {
  readonly #services: Services;
  readonly #call: ResolvedCall;
  readonly #parts: RecallingParts;
  /** The error if a reference belongs to another key. */
  #notTheirs: GatewayError | null = null;

  constructor(services: Services, call: ResolvedCall, parts: RecallingParts) {
    this.#services = services;
    this.#call = call;
    this.#parts = parts;
  }

  start(): void {
    // A store read cannot be cancelled; after a disconnect its result is dropped.
    new WaitingClient(this.#services, this.#call);
    const { ids } = this.#parts.wanted;
    const then = (found: readonly (string | null)[]): void => this.#findBefore(found);
    this.#find(ids, then, this.#mayBeKnown ? () => then(ids.map(() => null)) : null, (mostBytes) =>
      this.#findAmongAll(ids, mostBytes),
    );
  }

  /** Searches all keys' records: a key that learns another key's id could otherwise continue from it at an upstream. */
  async #findAmongAll(ids: readonly string[], mostBytes: number): Promise<FoundValues> {
    const { owned, wanted } = this.#parts;
    const found = await owned.find(this.#call.key.id, ids, mostBytes);
    if (found === null) return null;
    this.#notTheirs = wanted.notTheirs(found.ofOthers);
    return found.values;
  }

  /** Whether a target keeps turns itself, and so may know the turn that the call continues. */
  get #mayBeKnown(): boolean {
    const { endpoint } = this.#parts.options;
    return this.#call.model.targets.some((target) => keepsTurns(target, endpoint));
  }

  #findBefore(found: readonly (string | null)[]): void {
    if (this.#notTheirs !== null) throw this.#notTheirs;
    const { ids, bytes } = this.#parts.wanted.before(found);
    const { bodyBytes } = this.#call.running.snapshot.limits;
    if (bytes > bodyBytes) throw conversationTooLarge(bodyBytes);
    let read = bytes;
    for (const value of found) read += value?.length ?? 0;
    takeMemory(this.#services, this.#call, copies * read);
    this.#find(ids, (before) => this.#inTurn(read, () => this.#join(found, before)), null);
  }

  /** Does a step in a turn of its own if it takes long. @param bytes that it works on */
  #inTurn(bytes: number, step: () => void): void {
    const call = this.#call;
    if (bytes < largeBytes) {
      step();
      return;
    }
    const run = (): void => {
      if (!call.accounted) this.#run(step);
    };
    this.#services.largeBodies.add(guard('request', call, run));
  }

  #join(found: readonly (string | null)[], before: readonly (string | null)[]): void {
    const { settings, wanted } = this.#parts;
    const recalled = wanted.join(found, before, settings.recordBytes);
    const { bodyBytes } = this.#call.running.snapshot.limits;
    if ((recalled.body?.length ?? 0) > bodyBytes) throw conversationTooLarge(bodyBytes);
    this.#inTurn(recalled.body?.length ?? 0, () => this.#proceed(recalled));
  }

  #proceed(recalled: Recalled): void {
    const call = this.#call;
    const { schema, next } = this.#parts.options;
    const { bodyValues } = call.running.snapshot.limits;
    const mayBeKnown = this.#mayBeKnown || recalled.isBeside;
    const isForSole = mayBeKnown && !hasSeveralAccounts(call.model);
    // The only target judges references to what it made.
    if (isForSole && recalled.body === null) {
      next(this.#services, call);
      return;
    }
    if (recalled.unfound !== null && !mayBeKnown) throw recalled.unfound;
    if (recalled.body !== null) {
      const { stream } = call.checkedBody();
      call.body = recalled.body;
      call.validated = { ...validateBody(recalled.body, schema, bodyValues), stream };
    }
    if (recalled.input !== null) call.socketCall?.onRecalled(recalled.input);
    // Dropped here, since the call holds the body already.
    call.recalled = { ...recalled, body: null, input: null, holder: isForSole ? null : recalled.holder };
    next(this.#services, call);
  }

  /**
   * @param without proceeds if the store fails or does not answer soon; null if that is impossible. Without a search,
   * nobody knows whether the ids are another key's: a call whose search cannot begin soon is refused
   * @param find called with the bytes that may be in memory
   */
  #find(
    ids: readonly string[],
    then: (found: readonly (string | null)[]) => void,
    without: (() => void) | null,
    find = (mostBytes: number): Promise<FoundValues> =>
      this.#parts.owned.find(this.#call.key.id, ids, mostBytes).then((found) => found?.values ?? null),
  ): void {
    const services = this.#services;
    const call = this.#call;
    const { bodyBytes } = call.running.snapshot.limits;
    if (ids.length === 0) {
      then([]);
      return;
    }
    let isOver = false;
    let isBegun = false;
    const once = (run: () => void): void => {
      clearTimeout(timer);
      if (isOver || call.accounted) return;
      isOver = true;
      this.#run(run);
    };
    const found = (values: FoundValues): void =>
      once(() => {
        if (values === null) throw conversationTooLarge(bodyBytes);
        then(values);
      });
    const failed = (fault: unknown): void =>
      once(() => {
        if (without === null) throw fault;
        if (!isBegun) throw unavailable(fault);
        noteStoreFault(services, fault);
        without();
      });
    const late = guard('timer', call, (wasBegun: boolean) => {
      if (wasBegun === isBegun) failed(new Error('the store took too long'));
    });
    const startTimer = (): NodeJS.Timeout | undefined =>
      // After a blocked event loop, the store's answer may be waiting. It is read before the immediate runs.
      without === null
        ? undefined
        : setTimeout(() => setImmediate(late, isBegun), services.storeWait.turnsMs);
    let timer = startTimer();
    const most = bodyBytes + this.#parts.settings.recordBytes;
    services.finding.add({
      keyId: call.key.id,
      find: () => {
        if (isOver || call.accounted) return null;
        isBegun = true;
        clearTimeout(timer);
        timer = startTimer();
        return find(most);
      },
      found: guard('promise', call, found),
      failed: guard('promise', call, failed),
    });
  }

  /** Runs a step whose errors the client gets. */
  #run(step: () => void): void {
    try {
      step();
    } catch (fault) {
      refuse(this.#services, this.#call, refusalOf(this.#services, this.#call, 'request', fault));
    }
  }
}

function conversationTooLarge(bodyBytes: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `The request is too large with the conversation that it goes on from: at most ${bodyBytes} bytes.`,
  );
}
