/**
 * Where calls that begin alike go: hashes of 32 bits, and rendezvous hashing (highest random weight) over them. Every
 * worker and every gateway comes to the same answer from the same config, without a table. The hashes are not meant to
 * withstand somebody who looks for collisions: all that he can reach is that his own calls go to one target, and the
 * bound on its load holds for them as well.
 */

import { wordAt } from '../wire/json-skip.js';

/** Bytes of a prompt that decide. A prompt cache knows beginnings, and hashing more would cost every call. */
export const affinityBytes = 1024;

/** Spreads the bits of a block upward (MurmurHash3 for x86, as are the next two). */
function scramble(block: number): number {
  const product = Math.imul(block, 0xcc9e2d51);
  return Math.imul((product << 15) | (product >>> 17), 0x1b873593);
}

/** Takes in a block of 32 bits. */
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
 * Hashes a text.
 * @param seed the hash of what stands before it, or any number
 * @returns a signed integer of 32 bits, which V8 keeps without an allocation
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
 * Hashes the bytes from `from` to before `to`, of which `affinityBytes` at most are read.
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
 * Hashes whose calls they are and for which model: the seed for `hashBytes` over the prompt. Keys do not share it, so
 * that nobody learns from an answer's speed what others have asked.
 */
export function ownerHash(keyId: string, model: string): number {
  return hashText(hashText(0, keyId), model);
}

/** Hashes what a target is known by. */
export function targetHash(upstream: string, model: string): number {
  return hashText(hashText(0x9e3779b9, upstream), model);
}

/**
 * How much a target wants a call: among several the highest wins, and each wins a share of all hashes that is its
 * share of the weights. It depends on nothing but these three, so that a target that goes takes only its own share
 * with it, and one that comes takes from each what is due to it.
 *
 * The form is weight / -ln(u), where u is the hash of both, in (0, 1): -ln(u) / weight is exponentially distributed
 * with that weight as its rate, and the lowest of several such is each one with the probability of its share.
 * @param hash of the call
 * @param target its hash
 * @param weight 0 or more; 0 loses to every other
 */
export function rendezvousScore(hash: number, target: number, weight: number): number {
  const uniform = ((avalanche(hash ^ target) >>> 0) + 0.5) / 4_294_967_296;
  return weight / -Math.log(uniform);
}

/**
 * How much a key of an upstream wants a call, of which the highest gets it: a prompt cache belongs to an account, and
 * keys may be of several. The text of each key decides, not its place, so that one more or less moves only its own
 * share of calls.
 * @param hash of the call
 * @param key hash of the key's text
 */
export function keyScore(hash: number, key: number): number {
  return avalanche(hash ^ key) >>> 0;
}
