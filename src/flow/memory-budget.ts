import { GatewayError } from '../errors.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type { UpstreamExchange } from '../upstream/types.js';
import type { Call, MemoryHolder } from './call.js';

/** Seconds after which a refused client may retry. */
const retryAfter = 1;
const smallAnswer = 64 * 1024;

/**
 * Counts the bytes of bodies and gathered answers that this worker holds, in total and for each key. The last used key is
 * kept apart from the others: most calls follow one of the same key, and then no lookup is needed.
 */
export class MemoryBudget {
  /** Of all calls. */
  bytes = 0;
  readonly #others = new Map<string, number>();
  #last = '';
  #lastBytes = 0;

  /** Returns the bytes that the calls of a key hold. */
  bytesOf(keyId: string): number {
    if (keyId !== this.#last) this.#find(keyId);
    return this.#lastBytes;
  }

  /** @param bytes negative for bytes that are returned */
  add(keyId: string, bytes: number): void {
    if (keyId !== this.#last) this.#find(keyId);
    this.#lastBytes += bytes;
    this.bytes += bytes;
  }

  /** Lists the keys whose calls hold any bytes, with their number. */
  list(): (readonly [string, number])[] {
    this.#find('');
    return [...this.#others];
  }

  #find(keyId: string): void {
    if (this.#lastBytes === 0) this.#others.delete(this.#last);
    else this.#others.set(this.#last, this.#lastBytes);
    this.#last = keyId;
    this.#lastBytes = this.#others.get(keyId) ?? 0;
  }
}

/** The part of `Services` that is used here. */
interface WithMemory {
  readonly memory: MemoryBudget;
}

/**
 * Takes memory for what a call is about to hold: its body as it arrives, files fetched for it, and its answer if that is
 * gathered. This bounds what one worker holds however many clients send concurrently. The bound for the calls of one key
 * prevents one key from taking all of it.
 * @throws {GatewayError} `overloaded` if the worker's budget, or the key's part of it, is exhausted
 */
export function takeMemory(services: WithMemory, call: MemoryHolder, bytes: number): void {
  const refusal = tryMemory(services, call, bytes);
  if (refusal !== null) throw refusal;
}

/** Like `takeMemory`, without throwing. @returns the refusal, or null if the memory was taken */
export function tryMemory({ memory }: WithMemory, call: MemoryHolder, bytes: number): GatewayError | null {
  const { bufferedBytes, bufferedBytesPerKey } = call.running.snapshot.limits;
  const keyId = call.key?.id ?? '';
  if (memory.bytesOf(keyId) + bytes > bufferedBytesPerKey) return keyOverloaded(bufferedBytesPerKey);
  if (memory.bytes + bytes > bufferedBytes) return overloaded();
  memory.add(keyId, bytes);
  call.heldBytes += bytes;
  return null;
}

/**
 * Sets the bytes that a call holds, without a check. Used to return what it needs less, once its body's real length is
 * known.
 */
export function keepMemory(services: WithMemory, call: MemoryHolder, bytes: number): void {
  if (call.heldBytes === bytes) return;
  services.memory.add(call.key?.id ?? '', bytes - call.heldBytes);
  call.heldBytes = bytes;
  if (call.gathered > bytes) call.gathered = bytes;
}

/** Sets the bytes that a call holds in total, with a check if they grow. @throws {GatewayError} as `takeMemory` does */
export function setHeldBytes(services: WithMemory, call: MemoryHolder, bytes: number): void {
  if (bytes > call.heldBytes) takeMemory(services, call, bytes - call.heldBytes);
  else keepMemory(services, call, bytes);
}

/**
 * Sets how much of its upstream's answer a call is about to hold. A small answer counts but is never refused: the upstream
 * has done its work.
 * @returns the refusal if there is no room, else null
 */
export function takeAnswerMemory(
  services: WithMemory,
  call: MemoryHolder,
  bytes: number,
): GatewayError | null {
  const more = bytes - call.gathered;
  if (more > 0 && bytes > smallAnswer) {
    const refusal = tryMemory(services, call, more);
    if (refusal !== null) return refusal;
  } else keepMemory(services, call, call.heldBytes + more);
  call.gathered = bytes;
  return null;
}

/** Counts a part of an answer that is in memory already and cannot be refused, since its client has not read it yet. */
export function countAnswerMemory(services: WithMemory, call: MemoryHolder, bytes: number): void {
  const more = bytes - call.gathered;
  keepMemory(services, call, call.heldBytes + more);
  call.gathered = bytes;
}

/**
 * Counts the unread part of an ended call's stream, until the client has read it or disconnects. The last events of some
 * protocols repeat the whole answer.
 */
export function countUnread({ memory }: WithMemory, { exchange, key }: Call): void {
  const { unreadBytes } = exchange;
  if (unreadBytes <= smallAnswer || !exchange.alive) return;
  const keyId = key?.id ?? '';
  memory.add(keyId, unreadBytes);
  exchange.onOver = () => memory.add(keyId, -unreadBytes);
}

/**
 * Removes what a call holds from its account, for work that continues after its client has disconnected.
 * @returns a function that returns the bytes; to be called once
 */
export function detachMemory(services: WithMemory, call: Call): () => void {
  const { heldBytes } = call;
  const keyId = call.key?.id ?? '';
  call.heldBytes = 0;
  call.gathered = 0;
  return () => services.memory.add(keyId, -heldBytes);
}

/**
 * Releases the request body when it cannot be needed again. An attempt that was given up may still hold it, so its buffer
 * returns to the pool only after a call that needed one attempt.
 * @param upstream the attempt that answers: whether it still reads the request from its buffers
 * @param transform of that answer
 */
export function releaseBody(
  services: WithMemory,
  call: Call,
  upstream: UpstreamExchange | null,
  transform: AnswerTransform | null,
): void {
  if (call.body === null) return;
  if (upstream?.bodyReleased && call.retries === 0) call.exchange.recycleBody();
  call.body = null;
  call.validated = null;
  keepMemory(services, call, call.gathered + keptBytes(transform));
}

/** Returns the number of request bytes that wait to be stored with the answer. */
export function keptBytes(transform: AnswerTransform | null): number {
  return transform?.keep?.bytes ?? 0;
}

function overloaded(): GatewayError {
  return new GatewayError(
    'overloaded',
    'The gateway cannot hold more request bodies at the moment: try again shortly.',
    { retryAfter },
  );
}

function keyOverloaded(bytes: number): GatewayError {
  return new GatewayError(
    'overloaded',
    `The calls of your key hold as much memory as those of one key may here (${bytes} bytes): let some of them end, ` +
      'and try again.',
    { retryAfter },
  );
}
