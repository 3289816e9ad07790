import Anthropic from 'anthropic1';

const client = new Anthropic({ baseURL: 'http://127.0.0.1:44837', apiKey: process.env.GATEWAY_KEY });
const message = await client.messages.create({
  model: 'sim-text',
  max_tokens: 4096,
  system: 'Don\'t be long.',
  messages: [
    { role: 'user', content: 'It\'s me' },
    { role: 'assistant', content: 'Hello.' },
    {
      role: 'user',
      content: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line',
    },
  ],
  thinking: { type: 'enabled', budget_tokens: 1024 },
});
for (const block of message.content) {
  if (block.type === 'text') console.log(block.text);
}
