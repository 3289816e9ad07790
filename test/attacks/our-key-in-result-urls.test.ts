import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { clientFormats } from '../support/media/client-formats.js';
import { mediaConfig } from '../support/media/gateway.js';
import { ended } from '../support/media/videos.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';

const key = 'sk-own-upstream-key-Zq81xW';
const inPercents = [...key].map((each) => `%${each.charCodeAt(0).toString(16)}`).join('');

test('a video at a URL with our key is fetched through the gateway', async (t) => {
  for (const secret of [key, inPercents, '']) {
    const file = `https://files.example.com/v.mp4?key=${secret}`;
    const upstream = await startRawUpstream(t, ({ socket }) => {
      socket.write(
        jsonAnswer(200, JSON.stringify({ task_id: 'theirs', status: 'completed', url: file, format: 'mp4' })),
      );
    });
    const gateway = await startGateway(t, {
      config: mediaConfig(t, {
        upstreams: { u: { kind: 'generic', baseUrl: upstream.url, apiKeys: [key] } },
        models: { m: { protocols: ['video'], targets: [{ upstream: 'u' }] } },
      }),
    });
    for (const clientFormat of clientFormats) {
      const id = clientFormat.idOf(await clientFormat.create(gateway, { model: 'm', prompt: 'a' }));
      await ended(clientFormat, gateway, id);
      const { state, heard } = await clientFormat.show(gateway, id);
      t.equal(state, 'completed', clientFormat.format);
      t.notMatch(heard.text, /Zq81xW|%5a%71%38/, clientFormat.format);
      if (secret !== '' && heard.text.includes('url')) t.match(heard.text, `/v1/videos/${id}/content`);
    }
    await gateway.gateway.close();
    await upstream.close();
  }
});
