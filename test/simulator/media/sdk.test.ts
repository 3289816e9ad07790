import { test } from 'tap';
import { describeAudio } from '../../../src/simulator/media/audio-text.js';
import { createClient, sdks } from '../../support/sdks/openai.js';
import { simulate } from '../../support/simulator.js';
import { file, get } from '../media-ask.js';

for (const sdk of sdks.filter(({ name }) => name !== 'openai 4')) {
  test(`${sdk.name} speaks, and understands what was spoken`, async (t) => {
    const simulator = await simulate(t);
    const client = createClient(sdk, simulator, { baseURL: simulator.url });
    const speech = { model: 'sim-speech', voice: 'alloy', input: 'Good morning, everybody.' } as const;
    const audio = Buffer.from(await (await client.audio.speech.create(speech)).arrayBuffer());
    t.equal(describeAudio(audio).container, 'mp3');
    const shared = { file: file('talk.mp3', 'audio/mpeg', audio), model: 'sim-transcribe' } as const;
    t.equal((await client.audio.transcriptions.create(shared)).text, speech.input);
    const verbose = await client.audio.transcriptions.create({
      ...shared,
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    });
    t.match(verbose, { words: [{ word: 'Good' }], segments: [{ id: 0 }], duration: Number });
    const srt = await client.audio.transcriptions.create({ ...shared, response_format: 'srt' });
    t.match(srt, /^1\n00:00:00,000 --> /);
    const stream = await client.audio.transcriptions.create({ ...shared, stream: true });
    let text = '';
    for await (const event of stream) {
      text += event.type === 'transcript.text.delta' ? event.delta : '';
    }
    t.equal(text, speech.input);
    t.match(await client.audio.translations.create(shared), { text: /^Simulated translation of / });
    const refused = client.audio.speech.create({ ...speech, response_format: 'opus' });
    await t.rejects(refused, { status: 400, code: 'unsupported_value', param: 'response_format' });
  });

  test(`${sdk.name} makes and edits images`, async (t) => {
    const simulator = await simulate(t);
    const client = createClient(sdk, simulator, { baseURL: simulator.url });
    const asked = { model: 'sim-image', prompt: 'a fox', size: '256x256' } as const;
    const made = await client.images.generate({ ...asked, n: 2 });
    t.equal(made.data?.length, 2);
    const image = await get(simulator, made.data?.[0]?.url ?? '');
    t.equal(image.bytes.readUInt32BE(16), 256);
    const picture = file('a.png', 'image/png', image.bytes);
    const one = await client.images.edit({ ...asked, image: picture, response_format: 'b64_json' });
    t.ok(one.data?.[0]?.b64_json);
    const two = await client.images.edit({ ...asked, image: [picture, picture], mask: picture });
    t.ok(two.data?.[0]?.url);
    const stream = await client.images.generate({ ...asked, stream: true, partial_images: 1 });
    const types: string[] = [];
    for await (const event of stream) {
      types.push(event.type);
    }
    t.strictSame(types, ['image_generation.partial_image', 'image_generation.completed']);
    await t.rejects(client.images.generate({ ...asked, model: 'nope' }), {
      status: 404,
      code: 'model_not_found',
      param: 'model',
    });
  });

  test(`${sdk.name} makes a video and downloads it`, async (t) => {
    const simulator = await simulate(t);
    const client = createClient(sdk, simulator, { baseURL: simulator.url });
    const prompt = '[[video:queued=0 running=0]] a fox';
    const picture = file('a.png', 'image/png');
    const made = await client.videos.create({ model: 'sim-video', prompt, input_reference: picture });
    t.match(made, { id: /^video_/, object: 'video', seconds: '4', size: '720x1280' });
    const video = await client.videos.retrieve(made.id);
    t.match(video, { status: 'completed', progress: 100 });
    const content = await client.videos.downloadContent(made.id);
    t.equal(content.headers.get('content-type'), 'video/mp4');
    const bytes = Buffer.from(await content.arrayBuffer());
    t.equal(bytes.toString('latin1', 4, 8), 'ftyp');
    const thumbnail = await client.videos.downloadContent(made.id, { variant: 'thumbnail' });
    t.equal(thumbnail.headers.get('content-type'), 'image/webp');
    await t.rejects(client.videos.retrieve('video_unknown'), { status: 404, code: 'video_not_found' });
    const waiting = await client.videos.create({ model: 'sim-video', prompt: '[[video:queued=3600000]] a' });
    t.match(waiting, { status: 'queued', progress: 0 });
    await t.rejects(client.videos.downloadContent(waiting.id), { status: 404, code: 'video_not_ready' });
  });
}
