import { test } from 'tap';
import { submitted } from '../../src/video/advance.js';
import { correctionOf, markOwed } from '../../src/video/charge.js';
import type { TaskCharge, VideoResult } from '../../src/video/task.js';
import { resultOf, updateOf } from '../../src/video/upstream-formats/shared.js';
import { result, sampleTask } from './samples.js';

const charge: TaskCharge = {
  nanoUsd: 410,
  seconds: 4,
  videos: 1,
  paidNanoUsd: 200,
  secondsNanoUsd: 400,
  secondsPaidNanoUsd: 200,
  resolutions: [
    { resolution: '720p', secondsNanoUsd: 400, secondsPaidNanoUsd: 200 },
    { resolution: '1080p', secondsNanoUsd: 1200, secondsPaidNanoUsd: 300 },
  ],
  budgets: [],
};
const ended = (told: Partial<VideoResult>) =>
  sampleTask({ state: 'completed', seconds: '4', charge, result: { ...result, duration: 4, ...told } });
const corrected = (told: Partial<VideoResult>) => correctionOf(ended(told), charge);

test('a video of another size than was asked for costs what its size does', async (t) => {
  const larger = { width: 1920, height: 1080 };
  t.same(corrected({}), { nanoUsd: 0, seconds: 0, paidNanoUsd: 0 });
  t.same(corrected(larger), { nanoUsd: 800, seconds: 0, paidNanoUsd: 100 });
  t.equal(markOwed(ended(larger)).isOwed, true);
  t.same(corrected({ ...larger, duration: 8 }), { nanoUsd: 2000, seconds: 4, paidNanoUsd: 400 });
  t.same(corrected({ ...larger, duration: null }), { nanoUsd: 800, seconds: 0, paidNanoUsd: 100 });
  t.same(corrected({ width: 1080, height: 1920 }), { nanoUsd: 800, seconds: 0, paidNanoUsd: 100 }, 'upright');
});

test('a length that its upstream has told before costs what it does, if the end does not tell one', async (t) => {
  const told = { ...ended({ duration: null }), seconds: '8' };
  t.same(correctionOf(told, charge), { nanoUsd: 400, seconds: 4, paidNanoUsd: 200 });
  t.same(correctionOf({ ...told, result: { ...result, duration: 4 } }, charge).seconds, 0);
  const accepted = { id: 'up-1', update: updateOf('queued', { result: resultOf({ duration: 3601 }) }) };
  t.equal(submitted(sampleTask({ seconds: '4' }), accepted, 0).seconds, '4', 'which is in no seconds');
});

test('of several videos those are charged that their upstream lists', async (t) => {
  const ofThree = { ...charge, videos: 3, seconds: 12 };
  const more = (number: number) =>
    Array.from({ length: number }, () => ({ url: 'https://cdn.example/v', duration: 4 }));
  const seconds = (told: Partial<VideoResult>) => correctionOf(ended(told), ofThree).seconds;
  t.equal(seconds({ others: more(2) }), 0);
  t.equal(seconds({ others: more(3) }), 0, 'no more than were asked for');
  t.equal(seconds({ others: [] }), -8, 'it has made one');
  t.equal(seconds({}), 0, 'it does not list them');
});

test('a size that has no price of its own, and one that is not told, leave the price that was asked for', async (t) => {
  for (const told of [
    { width: 512, height: 512 },
    { width: null, height: null },
    { width: 1920, height: null },
  ])
    t.same(corrected(told), { nanoUsd: 0, seconds: 0, paidNanoUsd: 0 });
  const { resolutions: _, ...earlier } = charge;
  t.same(correctionOf(ended({ width: 1920, height: 1080 }), earlier), {
    nanoUsd: 0,
    seconds: 0,
    paidNanoUsd: 0,
  });
});
