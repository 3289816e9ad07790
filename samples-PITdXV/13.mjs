import { writeFile } from 'node:fs/promises';
import OpenAI from 'openai7';

const client = new OpenAI({ baseURL: 'http://127.0.0.1:44837/v1', apiKey: process.env.GATEWAY_KEY });
let video = await client.videos.create({
  model: 'sim-video',
  prompt: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line',
  seconds: '5',
  size: '1280x720',
});
while (video.status === 'queued' || video.status === 'in_progress') {
  await new Promise((resolve) => setTimeout(resolve, 1500));
  video = await client.videos.retrieve(video.id);
}
if (video.status === 'failed') throw new Error(video.error?.message);
const content = await client.videos.downloadContent(video.id);
await writeFile('video.mp4', Buffer.from(await content.arrayBuffer()));
