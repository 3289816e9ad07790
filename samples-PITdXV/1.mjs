import OpenAI from 'openai7';

const client = new OpenAI({ baseURL: 'http://127.0.0.1:44837/v1', apiKey: process.env.GATEWAY_KEY });
const completion = await client.chat.completions.create({
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
  reasoning_effort: 'low',
});
console.log(completion.choices[0]?.message.content);
