import t, { test } from 'tap';
import { origins } from '../stress/media-stage.js';
import { uploadOnce } from '../stress/upload.js';
import { downloads } from '../stress/video.js';

const bytes = 96 * 1024 ** 2;
/** Much less than a file, and more than a collector leaves lying about. */
const mostGrowthMb = 48;

test('a large upload reaches the upstream whole, and costs no memory', async (t) => {
  // At the pace of a network: where everything shares few cores, a client at that of memory outruns whoever reads it.
  const figures = await uploadOnce({ fileBytes: bytes, warmUpSeconds: 0.5, bytesPerSecond: 64 * 1024 ** 2 });
  const { status, sent } = figures.uploaded;
  t.equal(status, 200);
  t.equal(figures.receivedBytes, sent.bytes);
  t.equal(figures.receivedSha256, sent.sha256);
  const growth = figures.highestMb - figures.beforeMb;
  t.ok(growth < mostGrowthMb, `${growth} MB`);
});

for (const origin of origins) {
  const from = origin === 'path' ? 'the upstream' : 'an address';
  test(`a large video from ${from} comes whole, in part and resumed, and costs no memory`, async (t) => {
    const figures = await downloads({ origin, bytes, warmUpSeconds: 0.5 });
    const { status, announced, isEqual, partStatus, partIsEqual, resumedIsEqual } = figures;
    t.strictSame({ status, announced, isEqual }, { status: 200, announced: bytes, isEqual: true });
    t.strictSame({ partStatus, partIsEqual }, { partStatus: 206, partIsEqual: true });
    t.ok(resumedIsEqual);
    const growth = figures.highestMb - figures.beforeMb;
    t.ok(growth < mostGrowthMb, `${growth} MB`);
  });
}

t.end();
