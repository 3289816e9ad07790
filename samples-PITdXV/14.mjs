import { writeFile } from 'node:fs/promises';

const baseUrl = 'http://127.0.0.1:44837';
const headers = {
  authorization: `Bearer ${process.env.GATEWAY_KEY}`,
  'content-type': 'application/json',
};
let answer = await fetch(`${baseUrl}/v1/video/generations`, {
  method: 'POST',
  headers,
  body: JSON.stringify({
    model: 'sim-video',
    prompt: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line',
    duration: 5,
    width: 1280,
    height: 720,
  }),
});
let task = await answer.json();
const id = task.task_id;
do {
  await new Promise((resolve) => setTimeout(resolve, 1500));
  answer = await fetch(`${baseUrl}/v1/video/generations/${id}`, { headers });
  task = await answer.json();
} while (['queued', 'in_progress'].includes(task.status));
const video = await fetch(`${baseUrl}/v1/videos/${id}/content`, { headers });
if (!video.ok) throw new Error(await video.text());
await writeFile('video.mp4', Buffer.from(await video.arrayBuffer()));
