import { test } from 'tap';
import { demoConfig } from '../../../src/config/demo.js';
import { type Choice, modelsFor, protocolsOf, requestOf } from '../../../src/console/playground/choice.js';
import { readImages, speechFormats } from '../../../src/console/playground/media-request.js';
import {
  readVideoState,
  type VideoFormat,
  videoContent,
  videoPoll,
} from '../../../src/console/playground/video-request.js';
import { startGateway } from '../../support/gateway.js';
import { read, send } from './asked.js';

const unset = { model: 'sim-image', size: '', result: '', ratio: '', resolution: '' } as const;
const imageProtocols = ['images', 'imagesInput', 'generateContent'] as const;

for (const protocol of imageProtocols) {
  test(`an image by ${protocol} has the size that was asked for`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const settings = {
      ...unset,
      size: '1024x1536',
      result: 'b64_json',
      ratio: '2:3',
      resolution: '2K',
    } as const;
    const response = await send(url, requestOf({ kind: 'image', protocol, settings }, 'A lighthouse', []));
    t.equal(response.status, 200);
    const images = readImages(await response.json());
    t.equal(images.length, 1);
    const [image] = images;
    if (image?.kind !== 'bytes') return void t.fail('no bytes');
    const bytes = Buffer.from(image.base64, 'base64');
    if (image.type !== 'image/png') return void t.fail(image.type);
    t.equal(bytes.toString('latin1', 1, 4), 'PNG');
    const expected = protocol === 'generateContent' ? [1696, 2528] : [1024, 1536];
    t.strictSame([bytes.readUInt32BE(16), bytes.readUInt32BE(20)], expected);
  });

  test(`an image by ${protocol} needs no settings`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const response = await send(
      url,
      requestOf({ kind: 'image', protocol, settings: unset }, 'A lighthouse', []),
    );
    t.equal(response.status, 200);
    t.equal(readImages(await response.json()).length, 1);
  });
}

test('what is said beside an image is read as the text of an answer', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const choice: Choice = { kind: 'image', protocol: 'generateContent', settings: unset };
  const response = await send(url, requestOf(choice, 'A lighthouse', []));
  const answer = await read('generateContent', response);
  t.match(answer, { text: /A lighthouse/, finish: 'STOP', tokens: { output: 1129 } });
});

test('an image can be asked for by its address', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const settings = { ...unset, result: 'url' } as const;
  const choice: Choice = { kind: 'image', protocol: 'images', settings };
  const response = await send(url, requestOf(choice, 'A lighthouse', []));
  t.match(readImages(await response.json()), [{ kind: 'url', url: /^http:\/\/127\.0\.0\.1:/ }]);
});

test('a speech comes in the formats that the simulator knows', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  for (const format of ['mp3', 'wav', 'flac', 'pcm']) {
    t.ok(speechFormats.includes(format));
    const settings = { model: 'sim-speech', voice: 'alloy', format, speed: 1.25 };
    const choice: Choice = { kind: 'speech', protocol: 'speech', settings };
    const response = await send(url, requestOf(choice, 'Hello there', []));
    t.equal(response.status, 200, format);
    t.match(response.headers.get('content-type'), /^audio\//);
    t.ok((await response.arrayBuffer()).byteLength > 100);
  }
});

for (const { name } of protocolsOf.video) {
  const format = name as VideoFormat;
  test(`a video by ${format} is made, waited for and fetched`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const settings = { model: 'sim-video', size: '1280x720', seconds: 5 };
    const made = await send(
      url,
      requestOf({ kind: 'video', protocol: format, settings }, 'A lighthouse', []),
    );
    t.equal(made.status, 200);
    const created = readVideoState(format, await made.json());
    t.equal(created.state, 'queued');
    t.not(created.id, '');
    let state = created.state;
    for (let polls = 0; polls < 300 && state !== 'completed' && state !== 'failed'; polls++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      const polled = await send(url, videoPoll(format, settings.model, created.id));
      t.equal(polled.status, 200);
      const read = readVideoState(format, await polled.json());
      state = read.state;
      t.equal(read.error, null);
    }
    t.equal(state, 'completed');
    const content = await send(url, videoContent(created.id));
    t.equal(content.status, 200);
    t.equal(content.headers.get('content-type'), 'video/mp4');
    t.equal(Buffer.from(await content.arrayBuffer()).toString('latin1', 4, 8), 'ftyp');
  });

  test(`a video by ${format} that fails says why`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const settings = { model: 'sim-video', size: '720x720', seconds: 5 };
    const prompt = '[[video:queued=0 running=0 fail=content_policy]] A lighthouse';
    const made = await send(url, requestOf({ kind: 'video', protocol: format, settings }, prompt, []));
    const { id } = readVideoState(format, await made.json());
    for (let polls = 0; polls < 100; polls++) {
      const polled = await send(url, videoPoll(format, settings.model, id));
      const { state, error } = readVideoState(format, await polled.json());
      if (state === 'failed') return void t.match(error, /./);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    t.fail('it did not fail');
  });
}

test('each kind lists the models of the demo that serve it, the likeliest first', async (t) => {
  const { models } = demoConfig(1);
  t.strictSame(modelsFor('chat', 'messages', models), ['sim-text']);
  t.strictSame(modelsFor('image', 'images', models), ['sim-image']);
  t.strictSame(modelsFor('image', 'generateContent', models), ['sim-image'], 'not those that make only text');
  t.strictSame(modelsFor('speech', 'speech', models), ['sim-speech', 'sim-transcribe']);
  t.strictSame(modelsFor('video', 'vendorj', models), ['sim-video']);
});
