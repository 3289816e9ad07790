import { test } from 'tap';
import { expiryOf } from '../../src/video/url-expiry.js';

const at = Date.parse('2026-11-28T21:00:00Z');
const seconds = at / 1000;

test('a URL that was signed for a time says until when', async (t) => {
  const signed: Readonly<Record<string, string>> = {
    AWS: 'X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20261128T200000Z&X-Amz-Expires=3600&X-Amz-Signature=a',
    Google: 'X-Goog-Date=20261128T200000Z&X-Goog-Expires=3600&X-Goog-Signature=a',
    Volcengine: 'X-Tos-Date=20261128T200000Z&X-Tos-Expires=3600&X-Tos-Signature=a',
    'Alibaba Cloud': `Expires=${seconds}&OSSAccessKeyId=a&Signature=a`,
    CloudFront: `Expires=${seconds}&Signature=a&Key-Pair-Id=a`,
    'a CDN': `x-expires=${seconds}&x-signature=a`,
    Azure: 'sv=2026-02-06&se=2026-11-28T21%3A00%3A00Z&sr=b&sig=a',
    Tencent: `q-sign-algorithm=sha1&q-sign-time=${seconds - 600};${seconds}&q-signature=a`,
    'the earlier of two': `Expires=${seconds + 60}&x-expires=${seconds}`,
    'the earlier of two of one name': `Expires=${seconds}&Expires=${seconds + 60}`,
  };
  for (const [name, query] of Object.entries(signed))
    t.equal(expiryOf(`https://files.example.com/a.mp4?${query}`), at, name);
});

test('a URL that says no such thing is not taken to expire', async (t) => {
  const others = [
    '',
    'X-Amz-Expires=3600',
    'X-Amz-Date=20261128T200000Z&X-Amz-Expires=soon',
    'X-Amz-Date=20269928T200000Z&X-Amz-Expires=3600',
    'Expires=60',
    'expires=never',
    'se=sweden',
    'q-sign-time=1;2',
  ];
  for (const query of others) t.equal(expiryOf(`https://files.example.com/a.mp4?${query}`), null, query);
  t.equal(expiryOf('no URL'), null);
});
