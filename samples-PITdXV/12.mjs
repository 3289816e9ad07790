import { writeFile } from 'node:fs/promises';
import OpenAI from 'openai7';

const client = new OpenAI({ baseURL: 'http://127.0.0.1:44837/v1', apiKey: process.env.GATEWAY_KEY });
const speech = await client.audio.speech.create({
  model: 'sim-speech',
  voice: 'alloy',
  input: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line',
  response_format: 'wav',
});
await writeFile('speech.wav', Buffer.from(await speech.arrayBuffer()));
