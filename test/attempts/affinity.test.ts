import { test } from 'tap';
import {
  affinityBytes,
  hashBytes,
  hashText,
  keyScore,
  ownerHash,
  rendezvousScore,
  targetHash,
} from '../../src/attempts/affinity.js';
import { fc, randomOf, seed } from '../support/seed.js';

interface Candidate {
  readonly hash: number;
  readonly weight: number;
}

function winnerOf(candidates: readonly Candidate[], hash: number): Candidate {
  let best = candidates[0] as Candidate;
  for (const each of candidates) {
    if (rendezvousScore(hash, each.hash, each.weight) > rendezvousScore(hash, best.hash, best.weight))
      best = each;
  }
  return best;
}

const candidates = fc
  .uniqueArray(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 2, maxLength: 8 })
  .chain((names) =>
    fc
      .array(fc.integer({ min: 1, max: 20 }), { minLength: names.length, maxLength: names.length })
      .map((weights) =>
        names.map((name, i) => ({ hash: targetHash(name, 'm'), weight: weights[i] as number })),
      ),
  );
/** Hashes as calls have them. */
const hashes = Array.from({ length: 32_000 }, (_one, i) =>
  hashText(ownerHash('key', 'model'), `prompt ${i}`),
);

test('hashes are the same in every process and every release', async (t) => {
  t.equal(ownerHash('team-a', 'gpt-x'), -40_133_646);
  t.equal(targetHash('main', 'gpt-x-2026'), 1_365_697_352);
});

test('bytes are hashed as MurmurHash3 does', async (t) => {
  // Vectors of the reference implementation.
  for (const [text, seed, expected] of [
    ['', 0, 0],
    ['', 1, 0x514e28b7],
    ['test', 0, 0xba6bd213],
    ['Hello, world!', 0, 0xc0363e43],
    ['The quick brown fox jumps over the lazy dog', 0, 0x2e4ff723],
  ] as const)
    t.equal(hashBytes(seed, Buffer.from(text), 0, text.length), expected | 0, text);
});

test('where one text ends and the next begins matters', async (t) => {
  t.not(ownerHash('ab', 'c'), ownerHash('a', 'bc'));
  t.not(targetHash('ab', 'c'), targetHash('a', 'bc'));
  t.not(ownerHash('a', 'b'), ownerHash('b', 'a'));
});

test('bytes count as far as the range and the bound go, wherever they lie', async (t) => {
  const bytes = Buffer.alloc(3000, 7);
  const hash = hashBytes(5, bytes, 10, 2000);
  bytes[9] = 0;
  bytes[10 + affinityBytes] = 0;
  t.equal(hashBytes(5, bytes, 10, 2000), hash);
  bytes[10 + affinityBytes - 1] = 0;
  t.not(hashBytes(5, bytes, 10, 2000), hash);
  t.not(hashBytes(6, bytes, 10, 2000), hashBytes(5, bytes, 10, 2000));
  t.equal(hashBytes(5, bytes, 2990, 9000), hashBytes(5, bytes, 2990, 3000), 'a range beyond the end');
  t.equal(hashBytes(5, bytes, 50, 40), hashBytes(5, bytes, 50, 50), 'an empty one');
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(9), (text, offset) => {
      const moved = new Uint8Array(offset + text.length + 3).fill(9);
      moved.set(text, offset);
      return hashBytes(1, moved, offset, offset + text.length) === hashBytes(1, text, 0, text.length);
    }),
    { numRuns: 100 },
  );
});

test('every one of few bytes changes the hash', async (t) => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 30 }),
      fc.nat(29),
      fc.integer({ min: 1, max: 255 }),
      (text, at, flip) => {
        const other = Uint8Array.from(text);
        const index = at % text.length;
        other[index] = (other[index] as number) ^ flip;
        return hashBytes(0, text, 0, text.length) !== hashBytes(0, other, 0, other.length);
      },
    ),
    { numRuns: 200 },
  );
  t.pass();
});

test('a target that goes moves only the calls that were its own', async (t) => {
  fc.assert(
    fc.property(candidates, fc.nat(7), (all, index) => {
      const gone = all[index % all.length] as Candidate;
      const left = all.filter((each) => each !== gone);
      return hashes.slice(0, 500).every((hash) => {
        const before = winnerOf(all, hash);
        return before === gone || winnerOf(left, hash) === before;
      });
    }),
    { numRuns: 40 },
  );
  t.pass();
});

test('more weight takes calls for itself and moves no others', async (t) => {
  fc.assert(
    fc.property(candidates, (all) => {
      const [first, ...others] = all as [Candidate, ...Candidate[]];
      const heavier = { ...first, weight: first.weight * 2 };
      return hashes.slice(0, 500).every((hash) => {
        const after = winnerOf([heavier, ...others], hash);
        return after === heavier || after === winnerOf(all, hash);
      });
    }),
    { numRuns: 40 },
  );
  t.pass();
});

test('shares follow the weights', async (t) => {
  fc.assert(
    fc.property(candidates, (all) => {
      const total = all.reduce((sum, { weight }) => sum + weight, 0);
      const won = new Map<Candidate, number>();
      for (const hash of hashes) {
        const winner = winnerOf(all, hash);
        won.set(winner, (won.get(winner) ?? 0) + 1);
      }
      // Ten standard deviations.
      return all.every((each) => {
        const share = each.weight / total;
        const bound = 10 * Math.sqrt((share * (1 - share)) / hashes.length);
        return Math.abs((won.get(each) ?? 0) / hashes.length - share) <= bound;
      });
    }),
    { numRuns: 30 },
  );
  t.pass();
});

test('scores are numbers for every hash, and a weight of nothing loses', async (t) => {
  fc.assert(
    fc.property(fc.integer(), fc.integer(), (hash, target) => {
      const score = rendezvousScore(hash, target, 1);
      return Number.isFinite(score) && score > 0 && rendezvousScore(hash, target, 0) === 0;
    }),
  );
  t.pass();
});

test('keys and targets are chosen independently of each other', async (t) => {
  const random = randomOf(seed);
  const targets = ['a', 'b'].map((name) => ({ hash: targetHash(name, 'm'), weight: 1 }));
  const [x, y] = [hashText(0, 'x'), hashText(0, 'y')];
  const isFirstKey = (hash: number) => keyScore(hash, x) > keyScore(hash, y);
  let both = 0;
  const calls = 8000;
  for (let i = 0; i < calls; i++) {
    const hash = Math.floor(random() * 4_294_967_296) | 0;
    if (winnerOf(targets, hash) === targets[0] && isFirstKey(hash)) both++;
  }
  t.ok(Math.abs(both / calls - 0.25) < 0.03);
});
