import { test } from 'tap';
import {
  ago,
  bytes,
  count,
  dollars,
  duration,
  moment,
  percent,
  rate,
  span,
  whole,
} from '../../src/console/format.js';

test('counts are short, and whole ones have all their digits', async (t) => {
  t.same([0, 0.126, 12.34, 950.4, 9999, 12_345, 4_560_000, 2e12].map(count), [
    '0',
    '0.13',
    '12.3',
    '950',
    '9999',
    '12.3k',
    '4.56M',
    '2T',
  ]);
  t.equal(whole(2_481_337), '2,481,337');
  t.equal(rate(12_345), '12.3k/s');
});

test('durations are in the unit that suits them', async (t) => {
  t.same([null, 0.00034, 0.0125, 2.414, 119, 600].map(duration), [
    '–',
    '340 µs',
    '12.5 ms',
    '2.41 s',
    '119 s',
    '10 min',
  ]);
});

test('long times are in minutes, hours and days', async (t) => {
  const minute = 60_000;
  t.same([5000, 4 * minute, 60 * minute, 192 * minute, 1440 * minute, 3000 * minute].map(span), [
    '5 s',
    '4 min',
    '1 h',
    '3 h 12 min',
    '1 d',
    '2 d 2 h',
  ]);
  t.equal(ago(1000, 1500), 'now');
  t.equal(ago(0, 240_000), '4 min ago');
});

test('dollars have the digits that say something', async (t) => {
  t.same([0, 1234.5, 0.25, 0.00423, 0.000012].map(dollars), [
    '$0',
    '$1,234.50',
    '$0.25',
    '$0.0042',
    '$0.000012',
  ]);
});

test('bytes are in binary units, shares in percent', async (t) => {
  t.same([0, 1023, 1024, 642_000_000].map(bytes), ['0 B', '1023 B', '1 KiB', '612 MiB']);
  t.same([0, 0.0042, 0.031, 0.5, 1].map(percent), ['0%', '0.42%', '3.1%', '50%', '100%']);
});

test('a moment of another day has its date', async (t) => {
  const at = new Date(2026, 0, 2, 3, 4, 5).getTime();
  t.equal(moment(at, new Date(2026, 0, 2, 23).getTime()), '03:04:05');
  t.equal(moment(at, new Date(2026, 0, 3, 3).getTime()), '2026-01-02 03:04:05');
});
