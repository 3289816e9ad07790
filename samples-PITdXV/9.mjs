import OpenAI from 'openai7';

const client = new OpenAI({ baseURL: 'http://127.0.0.1:44837/v1', apiKey: process.env.GATEWAY_KEY });
const images = await client.images.generate({
  model: 'sim-image',
  prompt: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line',
  size: '512x512',
  response_format: 'url',
});
console.log(images.data?.[0]?.url);
