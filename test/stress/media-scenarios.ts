import { type Growth, type Origin, origins } from './media-stage.js';
import { held, type Line, mb, told } from './report.js';
import type { Scenario } from './scenario.js';
import { uploadOnce } from './upload.js';
import { downloads } from './video.js';
import { videoReaders } from './video-readers.js';

const fileBytes = 2 * 1024 ** 3;
const warmUpSeconds = 5;
const mostGrowthMb = 32;
const readers = 64;

function growthLines({ beforeMb, highestMb }: Growth): readonly Line[] {
  const growth = highestMb - beforeMb;
  return [
    told('resident after ordinary traffic', mb(beforeMb)),
    held('growth', mb(growth), `< ${mostGrowthMb} MB`, growth < mostGrowthMb),
  ];
}

const pace = (seconds: number): Line =>
  told(
    'pace, with this process making, taking and hashing it',
    `${(fileBytes / 1e6 / seconds).toFixed(0)} MB/s`,
  );
const yes = (what: string, isSo: boolean): Line => held(what, isSo ? 'yes' : 'no', 'yes', isSo);
const equal = (what: string, measured: number, wanted: number): Line =>
  held(what, measured, `${wanted}`, measured === wanted);

/** Files of 2 GiB in both directions. */
export const mediaScenarios: readonly Scenario[] = [
  {
    name: 'upload',
    mostSeconds: 180,
    async run() {
      const figures = await uploadOnce({ fileBytes, warmUpSeconds });
      const { status, sent } = figures.uploaded;
      return [
        equal('status', status, 200),
        equal('bytes of the form upstream', figures.receivedBytes ?? 0, sent.bytes),
        yes('the same bytes', figures.receivedSha256 === sent.sha256),
        ...growthLines(figures),
        pace(figures.seconds),
      ];
    },
  },
  {
    name: 'video',
    mostSeconds: 360,
    async run() {
      const lines: Line[] = [];
      for (const origin of origins) lines.push(...(await videoLines(origin)));
      return lines;
    },
  },
  {
    name: 'video-readers',
    mostSeconds: 120,
    async run(seconds) {
      const plan = { readers, bytes: fileBytes, bytesPerSecond: 65_536, warmUpSeconds };
      const figures = await videoReaders({ ...plan, seconds: seconds ?? 30 });
      return [
        equal('readers served, half of them from an address', figures.served, readers),
        told('read by all', mb(figures.bytesRead / 1024 ** 2)),
        equal('readers with wrong bytes', figures.wrong, 0),
        equal('readers cut', figures.cut, 0),
        ...growthLines(figures),
        equal('open upstream before they leave', figures.openBeforeLeaving, readers),
        equal('open upstream after', figures.openAfterLeaving, 0),
      ];
    },
  },
];

async function videoLines(origin: Origin): Promise<readonly Line[]> {
  const figures = await downloads({ origin, bytes: fileBytes, warmUpSeconds });
  return [
    told('from', origin === 'path' ? 'the upstream' : 'an address that the upstream gives'),
    equal('status', figures.status, 200),
    equal('content-length', figures.announced, fileBytes),
    yes('the same bytes', figures.isEqual),
    equal('status of a part', figures.partStatus, 206),
    yes('the same bytes in it', figures.partIsEqual),
    yes('the same bytes when resumed', figures.resumedIsEqual),
    ...growthLines(figures),
    pace(figures.seconds),
  ];
}
