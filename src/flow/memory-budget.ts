import { GatewayError } from '../errors.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type { UpstreamExchange } from '../upstream/types.js';
import type { Call, MemoryHolder } from './call.js';

/** Seconds after which a refused caller may try again. */
const retryAfter = 1;
const smallAnswer = 64 * 1024;

/**
 * Bytes of bodies and gathered answers that this worker holds, in all and for each key. The last key that was asked for
 * is kept beside the others: most calls follow one of the same key, and then nothing is looked up.
 */
export class MemoryBudget {
  /** Of all calls. */
  bytes = 0;
  readonly #others = new Map<string, number>();
  #last = '';
  #lastBytes = 0;

  /** What the calls of a key hold. */
  bytesOf(keyId: string): number {
    if (keyId !== this.#last) this.#find(keyId);
    return this.#lastBytes;
  }

  /** @param bytes below zero for those that are given back */
  add(keyId: string, bytes: number): void {
    if (keyId !== this.#last) this.#find(keyId);
    this.#lastBytes += bytes;
    this.bytes += bytes;
  }

  /** The keys whose calls hold anything, with what they hold. */
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

/** The part of `Services` that is needed here. */
interface WithMemory {
  readonly memory: MemoryBudget;
}

/**
 * Takes memory for what a call is about to hold: its body as it comes, what is fetched for it, and its answer where
 * that is gathered. What one worker holds stays bounded however many clients send at once, and so does what the calls
 * of one key hold there, so that no key takes the room of all.
 * @throws {GatewayError} `overloaded` when the worker's budget is spent, or the key's part of it
 */
export function takeMemory(services: WithMemory, call: MemoryHolder, bytes: number): void {
  const refusal = tryMemory(services, call, bytes);
  if (refusal !== null) throw refusal;
}

/** The same. @returns why there is no room; null where it was taken */
export function tryMemory({ memory }: WithMemory, call: MemoryHolder, bytes: number): GatewayError | null {
  const { bufferedBytes, bufferedBytesPerKey } = call.running.snapshot.limits;
  const keyId = call.key?.id ?? '';
  if (memory.bytesOf(keyId) + bytes > bufferedBytesPerKey) return keyOverloaded(bufferedBytesPerKey);
  if (memory.bytes + bytes > bufferedBytes) return overloaded();
  memory.add(keyId, bytes);
  call.heldBytes += bytes;
  return null;
}

/** Sets what a call holds: what it needs less is given back, once its body's real length is known. */
export function keepMemory(services: WithMemory, call: MemoryHolder, bytes: number): void {
  if (call.heldBytes === bytes) return;
  services.memory.add(call.key?.id ?? '', bytes - call.heldBytes);
  call.heldBytes = bytes;
  if (call.gathered > bytes) call.gathered = bytes;
}

/** The call is about to hold so many bytes in all. @throws {GatewayError} as `takeMemory` does */
export function holdInAll(services: WithMemory, call: MemoryHolder, bytes: number): void {
  if (bytes > call.heldBytes) takeMemory(services, call, bytes - call.heldBytes);
  else keepMemory(services, call, bytes);
}

/**
 * Says how much of its upstream's answer a call is about to hold. A small answer counts, and is never refused: the
 * upstream has done its work.
 * @returns why there is no room for it; else null
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

/** The same for what is in memory already and cannot be refused: a piece of an answer that its client does not take. */
export function countAnswerMemory(services: WithMemory, call: MemoryHolder, bytes: number): void {
  const more = bytes - call.gathered;
  keepMemory(services, call, call.heldBytes + more);
  call.gathered = bytes;
}

/**
 * Counts what the client of a call that has ended has not taken of its stream, until it has or leaves: the last events of
 * some protocols repeat all that was said.
 */
export function countUnread({ memory }: WithMemory, { exchange, key }: Call): void {
  const { unreadBytes } = exchange;
  if (unreadBytes <= smallAnswer || !exchange.alive) return;
  const keyId = key?.id ?? '';
  memory.add(keyId, unreadBytes);
  exchange.onOver = () => memory.add(keyId, -unreadBytes);
}

/**
 * Takes what a call holds from its account, for work that goes on when its client has left.
 * @returns gives it back; to be called once
 */
export function detachMemory(services: WithMemory, call: Call): () => void {
  const { heldBytes } = call;
  const keyId = call.key?.id ?? '';
  call.heldBytes = 0;
  call.gathered = 0;
  return () => services.memory.add(keyId, -heldBytes);
}

/**
 * Lets go of the request body once it cannot be needed again. An attempt that was given up may still hold it, so its
 * buffer goes back to the pool only after a call that needed one attempt.
 * @param upstream the attempt whose answer it gets: whether it will still read the request from its buffers
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

/** Bytes of the request that wait to be kept with the answer. */
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
