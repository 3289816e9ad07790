import { test } from 'tap';
import type { TextProtocolName } from '../../src/conversation/request.js';
import { pixel } from '../suites/translation/image.js';
import { startStrictStage } from '../support/strict-upstream/stage.js';
import { post, textProtocols } from '../support/translated.js';

/* Requests as clients of other makers than the protocol's own send them, at upstreams that refuse what their vendor does. */

const othersThan = (from: TextProtocolName) => textProtocols.filter((wire) => wire !== from);

for (const wire of othersThan('chat'))
  test(`an image whose URL is a text, as @ai-sdk/mistral sends it, reaches ${wire} upstreams`, async (t) => {
    const { port, upstream } = await startStrictStage(t, wire);
    const content = [
      { type: 'text', text: 'What is this? cell:image' },
      { type: 'image_url', image_url: `data:image/png;base64,${pixel}` },
    ];
    const { status, body } = await post(port, '/v1/chat/completions', {
      model: 'm',
      messages: [{ role: 'user', content }],
    });
    t.equal(status, 200, body);
    t.equal(upstream.heard[0]?.broken, null);
    t.match(body, '1 image seen.');
  });
