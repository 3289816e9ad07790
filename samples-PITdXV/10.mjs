import OpenAI from 'openai7';

const client = new OpenAI({ baseURL: 'http://127.0.0.1:44837/v1', apiKey: process.env.GATEWAY_KEY });
const answer = await client.post('/images/generations', {
  body: {
    model: 'sim-image',
    input: {
      messages: [
        {
          role: 'user',
          content: [{ text: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line' }],
        },
      ],
    },
    parameters: { size: '512*512' },
    response_format: 'b64_json',
  },
});
console.log(answer.data[0]);
