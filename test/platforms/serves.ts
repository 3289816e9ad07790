import { WebSocket } from 'ws';
import type { RunningCommand } from './running.js';

const headers = { authorization: 'Bearer sk-demo', 'content-type': 'application/json' };

async function post(url: string, path: string, body: object): Promise<Response> {
  const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

/** Makes a call and a stream. @returns what the model wrote, of both */
export async function callAndStream({ url }: RunningCommand): Promise<{ called: string; streamed: string }> {
  const body = { model: 'sim-text', messages: [{ role: 'user', content: 'Hello' }] };
  const answer = await post(url, '/v1/chat/completions', body);
  const called = JSON.stringify(await answer.json());
  const stream = await post(url, '/v1/chat/completions', { ...body, stream: true });
  return { called, streamed: await stream.text() };
}

/** Gets what is neither text nor code of the gateway: the console's page and its files, speech and an image. */
export async function getFiles({ url, lines }: RunningCommand): Promise<Readonly<Record<string, number>>> {
  const [, admin = ''] = /Operators +(http\S+)\/ /.exec(lines.join('\n')) ?? [];
  const sizes: Record<string, number> = {};
  for (const path of ['/', '/console/main.js', '/console/main.css']) {
    const answer = await fetch(`${admin}${path}`);
    sizes[path] = answer.status === 200 ? (await answer.arrayBuffer()).byteLength : 0;
  }
  const speech = await post(url, '/v1/audio/speech', { model: 'sim-speech', voice: 'alloy', input: 'Hello' });
  const image = await post(url, '/v1/images/generations', { model: 'sim-image', prompt: 'A lighthouse' });
  sizes.speech = (await speech.arrayBuffer()).byteLength;
  sizes.image = (await image.arrayBuffer()).byteLength;
  return sizes;
}

/** The names of the models that it offers. */
export async function modelNames({ url }: RunningCommand): Promise<readonly string[]> {
  const answer = await fetch(`${url}/v1/models`, { headers });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

/** Holds a realtime session of one turn. @returns the types of the events that came */
export function holdSession({ url }: RunningCommand): Promise<readonly string[]> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/realtime?model=sim-realtime`, { headers });
  const types: string[] = [];
  const says = [{ type: 'input_text', text: 'Hello' }];
  const turn = [
    { type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } },
    { type: 'conversation.item.create', item: { type: 'message', role: 'user', content: says } },
    { type: 'response.create' },
  ];
  return new Promise((resolve, reject) => {
    socket.once('open', () => {
      for (const event of turn) socket.send(JSON.stringify(event));
    });
    socket.on('message', (data) => {
      const { type } = JSON.parse(data.toString()) as { type: string };
      types.push(type);
      if (type === 'response.done') socket.close(1000);
    });
    socket.once('close', () => resolve(types));
    socket.once('error', reject);
  });
}
