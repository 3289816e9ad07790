import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Test, test } from 'tap';
import { jpegSheet, webpThumbnail } from '../../../src/simulator/media/assets.js';
import { mp4Video } from '../../../src/simulator/media/mp4.js';
import { pngImage } from '../../../src/simulator/media/png.js';
import { speech } from '../../../src/simulator/media/speech.js';
import { browserFailure, openPage } from '../../support/browser.js';
import { without } from './programs.js';

/** Only a browser that hangs takes so long; a whole run is a few seconds. */
const longestWait = 180_000;
const pageFlags = ['--mute-audio', '--autoplay-policy=no-user-gesture-required'];
const seed = 'a lighthouse';
const size = { width: 320, height: 180 };
const seconds = 2;
const spoken = 'one two three four';

const files = new Map<string, { type: string; body: Buffer }>([
  [
    '/',
    {
      type: 'text/html',
      body: Buffer.from('<!doctype html><script type="module" src="/script.js"></script>'),
    },
  ],
  ['/video', { type: 'video/mp4', body: mp4Video({ ...size, seconds, fps: 15, seed }) }],
  ['/png', { type: 'image/png', body: pngImage({ ...size, seed }) }],
  ['/webp', { type: 'image/webp', body: webpThumbnail(size) }],
  ['/jpeg', { type: 'image/jpeg', body: jpegSheet(size) }],
  ...(['mp3', 'wav', 'flac'] as const).map(
    (format) =>
      [
        `/${format}`,
        {
          type: 'application/octet-stream',
          body: Buffer.concat([...speech({ text: spoken, voice: 'nova', format, speed: 1 })]),
        },
      ] as const,
  ),
]);

/** Where the page looks at colours. */
const places = [
  [8, 8],
  [312, 8],
  [8, 136],
  [168, 88],
  [312, 136],
  [272, 90],
  [88, 40],
] as const;

const script = `
const places = ${JSON.stringify(places)};
const look = (source) => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [${size.width}, ${size.height}];
  const context = canvas.getContext('2d');
  context.drawImage(source, 0, 0);
  return places.map(([x, y]) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3));
};
const picture = async (path) => {
  const image = new Image();
  image.src = path;
  await image.decode();
  return { width: image.naturalWidth, height: image.naturalHeight, colours: look(image) };
};
const sound = async (path) => {
  const bytes = await (await fetch(path)).arrayBuffer();
  const { duration, numberOfChannels } = await new OfflineAudioContext(1, 1, 24000).decodeAudioData(bytes);
  return { duration, numberOfChannels };
};
const video = async (path) => {
  const player = document.createElement('video');
  const event = (name) => new Promise((resolve, reject) => {
    player.addEventListener(name, resolve, { hasEffects: true });
    player.addEventListener('error', () => reject(new Error(player.error.message)), { hasEffects: true });
  });
  const seek = async (time) => {
    const done = event('seeked');
    player.currentTime = time;
    await done;
    return look(player);
  };
  player.muted = true;
  player.src = path;
  document.body.append(player);
  const ended = event('ended');
  await player.play();
  await ended;
  const { videoWidth: width, videoHeight: height, duration, currentTime } = player;
  return { width, height, duration, currentTime, first: await seek(0.01), later: await seek(1.01) };
};
const seen = {};
for (const [kind, path] of [
  [picture, 'png'], [picture, 'webp'], [picture, 'jpeg'], [sound, 'mp3'], [sound, 'wav'], [sound, 'flac'], [video, 'video'],
]) {
  seen[path] = await kind('/' + path).catch((error) => ({ error: String(error) }));
}
await fetch('/seen', { method: 'POST', body: JSON.stringify(seen) });
`;
files.set('/script.js', { type: 'text/javascript', body: Buffer.from(script) });

type Triples = readonly (readonly number[])[];

interface Seen {
  readonly [file: string]: {
    readonly error?: string;
    readonly width?: number;
    readonly height?: number;
    readonly colours?: Triples;
    readonly first?: Triples;
    readonly later?: Triples;
    readonly duration?: number;
    readonly currentTime?: number;
    readonly numberOfChannels?: number;
  };
}

test('a browser plays and shows all of it', { skip: without('chromium') }, async (t) => {
  const { server, seen } = await serve(t);
  const browser = openPage(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, pageFlags);
  const found = await Promise.race([seen, browserFailure(browser, longestWait)]);
  for (const [file, { error }] of Object.entries(found)) {
    t.equal(error, undefined, file);
  }
  for (const [file, shown] of [
    ['png', size],
    ['webp', size],
    ['jpeg', { width: 640, height: 270 }],
  ] as const) {
    t.match(found[file], shown);
    t.ok(coloursOf(found[file]?.colours) > 2, `${file} is a picture`);
  }
  for (const format of ['mp3', 'wav', 'flac']) {
    const { duration = 0, numberOfChannels } = found[format] ?? {};
    t.ok(Math.abs(duration - 1) < 0.05, `${format} lasts ${duration} s`);
    t.equal(numberOfChannels, 1);
  }
  t.match(found.video, { ...size, duration: seconds });
  t.ok(Math.abs((found.video?.currentTime ?? 0) - seconds) < 0.1, 'played to its end');
  t.ok(coloursOf(found.video?.first) > 2, 'the first picture');
  t.strictNotSame(found.video?.later, found.video?.first, 'something has moved after a second');
});

/** How many different colours a page saw. */
function coloursOf(seen: Triples | undefined): number {
  return new Set((seen ?? []).map(String)).size;
}

/** Serves the files, whole or in ranges; `seen` is what the page sends back. */
async function serve(t: Test): Promise<{ server: Server; seen: Promise<Seen> }> {
  let heard: (seen: Seen) => void = () => {};
  const seen = new Promise<Seen>((resolve) => {
    heard = resolve;
  });
  const server = createServer(async (request, response) => {
    if (request.url === '/seen') {
      heard(JSON.parse(await text(request)));
      response.end();
    } else {
      answer(request, response);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, seen };
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const file = files.get(request.url ?? '');
  if (file === undefined) {
    response.writeHead(404).end();
    return;
  }
  const { type, body } = file;
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  if (from === undefined) {
    response.writeHead(200, { 'content-type': type, 'accept-ranges': 'bytes' }).end(body);
    return;
  }
  const end = to ? Math.min(Number(to) + 1, body.length) : body.length;
  response
    .writeHead(206, { 'content-type': type, 'content-range': `bytes ${from}-${end - 1}/${body.length}` })
    .end(body.subarray(Number(from), end));
}
