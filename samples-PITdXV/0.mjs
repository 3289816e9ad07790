import OpenAI from 'openai7';

const client = new OpenAI({ baseURL: 'http://127.0.0.1:44837/v1', apiKey: process.env.GATEWAY_KEY });
const stream = await client.chat.completions.create({
  model: 'sim-text',
  messages: [
    { role: 'system', content: 'Don\'t be long.' },
    { role: 'user', content: 'It\'s me' },
    { role: 'assistant', content: 'Hello.' },
    {
      role: 'user',
      content: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line',
    },
  ],
  max_completion_tokens: 2000,
  stream: true,
  stream_options: { include_usage: true },
  reasoning_effort: 'low',
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? '');
}
