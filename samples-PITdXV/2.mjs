import OpenAI from 'openai7';

const client = new OpenAI({ baseURL: 'http://127.0.0.1:44837/v1', apiKey: process.env.GATEWAY_KEY });
const stream = await client.responses.create({
  model: 'sim-text',
  instructions: 'Don\'t be long.',
  input: [
    { role: 'user', content: 'It\'s me' },
    { role: 'assistant', content: 'Hello.' },
    {
      role: 'user',
      content: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line',
    },
  ],
  max_output_tokens: 2000,
  stream: true,
  reasoning: { effort: 'low', summary: 'auto' },
});
for await (const event of stream) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta);
}
