import { test } from 'tap';
import { readCompatBody } from '../../src/video/client-formats/compat.js';
import { fingerprintOf } from '../../src/video/request.js';

const body = { model: 'm', prompt: 'a fox', seconds: '4' };
const request = readCompatBody(body);

test('a request that is sent again to another release is the same one, however that reads it', (t) => {
  const readAnew = { ...request, seconds: 5, width: 720, unreadLength: 'seconds', ofLaterRelease: null };
  t.equal(fingerprintOf(readAnew), fingerprintOf(request));
  // Stores have such values: another one here lets no request be sent again to the release that is put in place.
  t.equal(fingerprintOf(request), '4ef41ad4e32542520eebdcbc9420eac7');
  t.end();
});

test('requests that differ in anything that the client sent are different ones', (t) => {
  const part = {
    name: 'input_reference',
    data: Buffer.from('an image'),
    filename: 'a.png',
    contentType: 'image/png',
  };
  const requests = [
    request,
    { ...request, format: 'generic' as const },
    { ...request, model: 'another' },
    { ...request, body: { ...body, fps: 30 } },
    { ...request, form: [part] },
    { ...request, form: [{ ...part, data: Buffer.from('another image') }] },
    { ...request, form: [part, part] },
  ];
  t.equal(new Set(requests.map(fingerprintOf)).size, requests.length);
  t.end();
});
