import { wordAt } from '../wire/json-skip.js';

/*
 * Hashes that send calls that begin alike to the same target: 32 bits, with rendezvous hashing (highest random weight) over
 * them. Every worker and every gateway gets the same result from the same config, without a table. The hashes do not resist
 * a search for collisions. All that a collision achieves is that a client's own calls reach one target, and the bound on its
 * load applies to them as well.
 */

/** Bytes of a prompt that are hashed. A prompt cache works on beginnings, and hashing more would cost every call. */
export const affinityBytes = 1024;

/** Spreads the bits of a block upward (MurmurHash3 for x86, as are the next two). */
function scramble(block: number): number {
  const product = Math.imul(block, 0xcc9e2d51);
  return Math.imul((product << 15) | (product >>> 17), 0x1b873593);
}

/** Mixes a block of 32 bits into a hash. */
function mixIn(hash: number, block: number): number {
  const mixed = hash ^ scramble(block);
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}

/** Spreads every bit of the input over all bits. */
function avalanche(hash: number): number {
  let mixed = hash ^ (hash >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

/**
 * Hashes a string.
 * @param seed the hash of the text before it, or any number
 * @returns a signed integer of 32 bits, which V8 stores without an allocation
 */
export function hashText(seed: number, text: string): number {
  const { length } = text;
  let hash = seed | 0;
  let at = 0;
  for (; at + 1 < length; at += 2) hash = mixIn(hash, text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16));
  if (at < length) hash ^= scramble(text.charCodeAt(at));
  return avalanche(hash ^ length);
}

/**
 * Hashes the bytes from `from` to before `to`, at most `affinityBytes` of them.
 * @param seed the hash of what stands before them, or any number
 * @returns a signed integer of 32 bits
 */
export function hashBytes(seed: number, bytes: Uint8Array, from: number, to: number): number {
  const end = Math.min(to, from + affinityBytes, bytes.length);
  let hash = seed | 0;
  let at = from;
  for (; at + 3 < end; at += 4) {
    hash = mixIn(hash, wordAt(bytes, at));
  }
  let rest = 0;
  for (let shift = 0; at < end; at++, shift += 8) rest |= (bytes[at] as number) << shift;
  return avalanche(hash ^ scramble(rest) ^ Math.max(0, end - from));
}

/**
 * Hashes the owner and the model of calls: the seed for `hashBytes` over the prompt. Keys do not share it, so that the speed
 * of an answer does not reveal what other keys have sent.
 */
export function ownerHash(keyId: string, model: string): number {
  return hashText(hashText(0, keyId), model);
}

/** Hashes the identity of a target. */
export function targetHash(upstream: string, model: string): number {
  return hashText(hashText(0x9e3779b9, upstream), model);
}

/**
 * Returns the score of a target for a call. The highest of several wins, and each target wins a share of all hashes equal to
 * its share of the weights. The score depends only on these three values. A removed target thus moves only its own share of
 * calls, and an added one takes its due from each of the others.
 * The form is weight / -ln(u), where u is the hash of both, in (0, 1): -ln(u) / weight is exponentially distributed with
 * that weight as its rate, and each of several is the lowest with the probability of its share.
 * @param hash of the call
 * @param target its hash
 * @param weight 0 or more; 0 loses to every other
 */
export function rendezvousScore(hash: number, target: number, weight: number): number {
  const uniform = ((avalanche(hash ^ target) >>> 0) + 0.5) / 4_294_967_296;
  return weight / -Math.log(uniform);
}

/**
 * Returns the score of an upstream's key for a call, which the highest gets. A prompt cache belongs to an account, and keys
 * may belong to several. The text of each key decides, not its place, so that adding or removing one moves only its own
 * share of calls.
 * @param hash of the call
 * @param key hash of the key's text
 */
export function keyScore(hash: number, key: number): number {
  return avalanche(hash ^ key) >>> 0;
}
