import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { noteVendorAccountRefused } from '../../attempts/attempts.js';
import { carriesAccount } from '../../attempts/error-answer.js';
import { failureError } from '../../attempts/reported-error.js';
import { type Holder, isHolder, isLegalId } from '../../conversation/kept-turns.js';
import { GatewayError } from '../../errors.js';
import { isVendorAccountError, keyError } from '../../protocols/error-formats/vendor-account.js';
import {
  asksForStream,
  deletedResponse,
  type IdentifiedTurn,
  notCancellable,
  notStreamable,
  PageOfItems,
  type ResponseAction,
  readItemPage,
  responseNotFound,
} from '../../protocols/responses/by-id.js';
import { containersOf } from '../../protocols/responses/containers.js';
import { shownItems } from '../../protocols/responses/conversation.js';
import { type KeptResponse, readKept } from '../../protocols/responses/kept.js';
import { endedResponse } from '../../protocols/responses/stream/rules.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import { backgroundId } from '../../usage/background-calls.js';
import { parseObject } from '../../wire/json.js';
import { responseRequest, settleShown, settleUnknown } from '../background/settle.js';
import { largeBytes } from '../body/intake.js';
import type { AuthenticatedCall } from '../call.js';
import { takeMemory } from '../memory-budget.js';
import type { Services } from '../services.js';
import { type CollectedAnswer, type CollectedRequest, isFailure } from '../upstream/collect.js';
import { configuredPass } from '../upstream/head.js';
import { markedKey } from '../upstream/key-mark.js';
import { answerAsync, answerJson, type WaitingClient } from '../upstream/waiting-client.js';
import type { FoundValues } from './find-queue.js';
import { writeInBackground } from './records.js';
import { ShownStream } from './shown-stream.js';

/** A conversation is in memory as record texts, as items, and as the text of a page of items. */
const copies = 3;
/** How long a request waits for a new record that may still be on its way to the store. */
const underWayMs = 100;

/** Serves a request for a response by its id, which only the key that created it may send. */
export function answerById(services: Services, call: AuthenticatedCall, action: ResponseAction): void {
  const id = call.params.response_id ?? '';
  if (action === 'show' && asksForStream(call.exchange.head.query)) action = 'stream';
  answerAsync(services, call, async (waiting) => {
    const kept = await find(services, call, id);
    if (call.accounted) return;
    if (kept === null) throw responseNotFound(id);
    if (isHolder(kept)) await passOn(services, call, waiting, { id, action, holder: kept });
    else answerJson(services, call, 200, await ownAnswer(services, call, { id, kept }, action));
  });
}

/** @returns null if it is not kept or belongs to another key; clients cannot tell the two apart */
async function find(
  services: Services,
  call: AuthenticatedCall,
  id: string,
): Promise<KeptResponse | Holder | null> {
  const ids = isLegalId(id) ? [id] : [];
  let [value = null] = await read(services, call, ids);
  if (value === null && ids.length > 0) {
    await wait(underWayMs);
    if (call.accounted) return null;
    [value = null] = await read(services, call, ids);
  }
  if (value === null || call.accounted) return null;
  takeMemory(services, call, copies * value.length);
  return readLarge(services, value);
}

/** @throws {GatewayError} `request_too_large` if it exceeds the memory that a call may hold */
async function read(
  { owned, finding }: Services,
  call: AuthenticatedCall,
  ids: readonly string[],
): Promise<readonly (string | null)[]> {
  const { conversations, limits } = call.running.snapshot;
  if (owned === null || conversations === null || ids.length === 0) return [];
  const most = limits.bodyBytes + conversations.recordBytes;
  const found = await new Promise<FoundValues>((resolve, reject) => {
    finding.add({
      keyId: call.key.id,
      find: () => {
        if (!call.accounted) return owned.find(call.key.id, ids, most).then((found) => found?.values ?? null);
        resolve([]);
        return null;
      },
      found: resolve,
      failed: reject,
    });
  });
  if (found !== null) return found;
  throw new GatewayError('request_too_large', 'The conversation of this response is too large to be shown.');
}

async function ownAnswer(
  services: Services,
  call: AuthenticatedCall,
  turn: IdentifiedTurn,
  action: ResponseAction,
): Promise<string> {
  switch (action) {
    case 'stream':
      throw notStreamable();
    case 'show':
      return turn.kept.response;
    case 'items':
      return await ownItems(services, call, turn);
    case 'delete':
      await services.owned?.drop(call.key.id, turn.id);
      return deletedResponse(turn.id);
    case 'cancel':
      throw notCancellable();
  }
}

async function ownItems(services: Services, call: AuthenticatedCall, turn: IdentifiedTurn): Promise<string> {
  const page = new PageOfItems(readItemPage(call.exchange.head.query), turn);
  takeMemory(services, call, copies * turn.kept.bytes);
  for (let ids = page.needed; ids.length > 0; ids = page.needed) {
    const found = await read(services, call, ids);
    for (const [index, id] of ids.entries()) {
      const value = found[index] ?? null;
      const kept = value === null ? null : await readLarge(services, value);
      // An earlier turn is gone, so this page of the input cannot be shown.
      if (kept === null || isHolder(kept)) throw responseNotFound(turn.id);
      page.add({ id, kept });
    }
  }
  return page.text();
}

/** Reads the value of a record, in a turn of its own if that takes long. */
async function readLarge({ largeBodies }: Services, value: string): Promise<KeptResponse | Holder | null> {
  if (value.length >= largeBytes) await new Promise<void>((resolve) => largeBodies.add(resolve));
  return readKept(value);
}

interface HeldResponse {
  readonly id: string;
  readonly action: ResponseAction;
  readonly holder: Holder;
}

/**
 * Settles a response that is about to be deleted, if it was made in the background and has ended.
 * @returns its current state; null if it was not made in the background, or its upstream does not show it
 */
async function settleBefore(
  services: Services,
  { key }: AuthenticatedCall,
  id: string,
  show: () => Promise<CollectedAnswer | UpstreamFailure>,
): Promise<Buffer | null> {
  if ((await services.background.find(backgroundId(key.id, id))) === null) return null;
  const shown = await show();
  if (isFailure(shown) || shown.head.status >= 300) return null;
  await settleShown(services, key.id, id, shown.body);
  return shown.body;
}

/** Forwards a request to the upstream that holds a response. @throws {GatewayError} without an answer fit to pass on */
async function passOn(
  services: Services,
  call: AuthenticatedCall,
  waiting: WaitingClient,
  { id, action, holder }: HeldResponse,
): Promise<void> {
  const upstream = call.running.snapshot.upstreams.get(holder.upstream);
  if (upstream === undefined) throw responseNotFound(id);
  const apiKey = markedKey(upstream, holder.key);
  const { timeouts: deadlines } = call.running.snapshot;
  const request = (asked: ResponseAction, query: string): CollectedRequest =>
    responseRequest({
      upstream,
      apiKey,
      id,
      action: asked,
      query,
      lines: configuredPass(call, upstream),
      deadlines,
    });
  // Once it is deleted, its usage cannot be known.
  const before =
    action === 'delete'
      ? await settleBefore(services, call, id, () => waiting.collect(request('show', '')))
      : null;
  if (call.accounted) return;
  const onError = (error: GatewayError | null): void => {
    if (isVendorAccountError(error) && !carriesAccount(call, upstream))
      noteVendorAccountRefused(services, call, { upstream, model: holder.model, apiKey }, error);
  };
  // Containers and items of a background response appear here first.
  const noteShownIn = (run: Buffer, isStream: boolean): void => {
    const response = isStream ? endedResponse(run, true) : run;
    const items = response === null ? [] : shownItems(response, holder);
    writeInBackground(services, call, [...containersOf(run, isStream, holder), ...items]);
  };
  const onRun = (run: Buffer): void => noteShownIn(run, true);
  const stream =
    action === 'stream' ? new ShownStream(services, call, waiting, { id, upstream, onError, onRun }) : null;
  const answer = await waiting.collect(request(action, call.exchange.head.query), stream);
  if (stream?.isTaken) {
    stream.end(isFailure(answer) ? answer : null);
    return;
  }
  if (isFailure(answer)) throw failureError(answer);
  call.answeredAt = performance.now();
  const told = answer.refusal?.error ?? null;
  onError(told);
  if (told !== null) throw told;
  const { status } = answer.head;
  const text = answer.body.toString('utf8');
  const ofKey = keyError(answer.body, upstream.secrets);
  if (ofKey !== null) throw ofKey;
  if (parseObject(text) === null) throw new GatewayError('upstream_error');
  if (status < 300) {
    if (action === 'show' || action === 'cancel') noteShownIn(answer.body, false);
    if (action === 'delete') {
      await settleUnknown(services, call.key.id, id, before);
      await services.owned?.drop(call.key.id, id);
    } else if (action !== 'items') void settleShown(services, call.key.id, id, answer.body);
  }
  answerJson(services, call, status, text);
}
