import type { ConversationSettings, Key, Model } from '../../config/types.js';
import type { Recall, Recalled } from '../../conversation/kept-turns.js';
import { GatewayError, guard } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import type { Endpoint } from '../../protocols/protocol.js';
import type { CompiledSchema } from '../../schema/compile.js';
import type { OwnedRecords } from '../../store/owned.js';
import { account } from '../account.js';
import type { ResolvedCall } from '../call.js';
import { takeMemory } from '../memory-budget.js';
import { refuse } from '../refuse.js';
import type { Services } from '../services.js';
import { validateBody } from '../validate.js';
import { keepsTurns } from './keeps-turns.js';

/** Longer bodies for upstreams that take them as they come are not searched for references, which make bodies short. */
const longestSearched = 64 * 1024;
/** What is read of a conversation is in memory as texts of records, as one text, and as the body that is made of it. */
const copies = 3;
const hourMs = 3_600_000;

/** What a call is that may go on from an earlier one. */
export interface RecallOptions {
  readonly endpoint: Endpoint;
  readonly schema: CompiledSchema;
  /** What follows, with the whole request. */
  readonly next: (services: Services, call: ResolvedCall) => void;
}

/**
 * Whether a request may name an earlier turn that others know than the one target that there is for it: any other one
 * goes on at once, and costs nothing here.
 */
export function mayGoOn(services: Services, call: ResolvedCall, endpoint: Endpoint): boolean {
  const { conversation } = endpoint;
  if (conversation === null || services.owned === null || call.running.snapshot.conversations === null)
    return false;
  const isNative = call.model.targets.every((target) => keepsTurns(target, endpoint));
  if (isNative && !hasChoice(call.model)) return false;
  if (call.checkedBody().goesOn) return true;
  const { mention } = conversation;
  const body = call.wholeBody();
  return mention !== null && (!isNative || body.length <= longestSearched) && body.includes(mention);
}

/**
 * Puts what a request names of earlier turns in its place, where the gateway has kept them, and finds out who else has:
 * before its limits are taken, which then count the whole conversation.
 * @throws {GatewayError} of status 400 for what cannot be read, and whatever `next` throws at once; what comes later is
 * answered here
 */
export function recall(services: Services, call: ResolvedCall, options: RecallOptions): void {
  const settings = call.running.snapshot.conversations;
  const { owned } = services;
  const wanted = options.endpoint.conversation?.recall(call.wholeBody()) ?? null;
  if (wanted === null || settings === null || owned === null) options.next(services, call);
  else new Recalling(services, call, { options, settings, owned, wanted }).start();
}

function hasChoice({ targets }: Model): boolean {
  const [first] = targets;
  return targets.length > 1 || (first !== undefined && first.upstream.apiKeys.length > 1);
}

interface RecallingParts {
  readonly options: RecallOptions;
  readonly settings: ConversationSettings;
  readonly owned: OwnedRecords;
  readonly wanted: Recall;
}

/** A call that waits for the store. */
class Recalling implements ExchangeListener {
  readonly #services: Services;
  readonly #call: ResolvedCall;
  readonly #parts: RecallingParts;

  constructor(services: Services, call: ResolvedCall, parts: RecallingParts) {
    this.#services = services;
    this.#call = call;
    this.#parts = parts;
  }

  start(): void {
    this.#call.exchange.listener = this;
    const { ids } = this.#parts.wanted;
    this.#find(ids, (found) => this.#findBefore(found));
  }

  onClientGone(): void {
    account(this.#services, this.#call, 'client_gone');
  }

  /** Nothing is written before the store has answered. */
  onDrained(): void {}

  #findBefore(found: readonly (string | null)[]): void {
    const { ids, bytes } = this.#parts.wanted.before(found);
    const { bodyBytes } = this.#call.running.snapshot.limits;
    if (bytes > bodyBytes) throw tooLarge(bodyBytes);
    let read = bytes;
    for (const value of found) read += value?.length ?? 0;
    takeMemory(this.#services, this.#call, copies * read);
    this.#find(ids, (before) => this.#join(found, before));
  }

  #join(found: readonly (string | null)[], before: readonly (string | null)[]): void {
    const { settings, wanted } = this.#parts;
    const recalled = wanted.join(found, before, Date.now() - (settings.hours * hourMs) / 2);
    const { bodyBytes } = this.#call.running.snapshot.limits;
    if ((recalled.body?.length ?? 0) > bodyBytes) throw tooLarge(bodyBytes);
    this.#goOn(recalled);
  }

  #goOn(recalled: Recalled): void {
    const call = this.#call;
    const { endpoint, schema, next } = this.#parts.options;
    const { targets } = call.model;
    const mayBeKnown = targets.some((target) => keepsTurns(target, endpoint));
    if (recalled.unfound !== null && !mayBeKnown) throw recalled.unfound;
    if (recalled.body !== null) {
      const { stream } = call.checkedBody();
      call.body = recalled.body;
      call.validated = { ...validateBody(call.jsonBody(), schema), stream };
    }
    if (recalled.input !== null) call.socketCall?.onRecalled(recalled.input);
    // As long as the call lasts it is the body that is held, and not both.
    call.recalled = { ...recalled, body: null, input: null };
    next(this.#services, call);
  }

  #find(ids: readonly string[], then: (found: readonly (string | null)[]) => void): void {
    const call = this.#call;
    const { bodyBytes } = call.running.snapshot.limits;
    if (ids.length === 0) {
      then([]);
      return;
    }
    const found = (values: readonly (string | null)[] | null): void => {
      if (call.accounted) return;
      try {
        if (values === null) throw tooLarge(bodyBytes);
        then(values);
      } catch (fault) {
        refuse(this.#services, call, fault);
      }
    };
    const failed = (fault: unknown): void => {
      if (!call.accounted) refuse(this.#services, call, fault);
    };
    const most = bodyBytes + this.#parts.settings.recordBytes;
    this.#parts.owned
      .find(ownerOf(call.key), ids, most)
      .then(guard('promise', call, found, undefined), guard('promise', call, failed, undefined));
  }
}

/** Whose records a call may read, and makes. */
export function ownerOf(key: Key): string {
  return key.id;
}

function tooLarge(bodyBytes: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `The request is too large with the conversation that it goes on from: at most ${bodyBytes} bytes.`,
  );
}
