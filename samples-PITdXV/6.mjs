import { GoogleGenAI } from 'genai3';

const client = new GoogleGenAI({
  apiKey: process.env.GATEWAY_KEY,
  httpOptions: { baseUrl: 'http://127.0.0.1:44837' },
});
const stream = await client.models.generateContentStream({
  model: 'sim-text',
  contents: [
    { role: 'user', parts: [{ text: 'It\'s me' }] },
    { role: 'model', parts: [{ text: 'Hello.' }] },
    {
      role: 'user',
      parts: [{ text: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line' }],
    },
  ],
  config: {
    systemInstruction: 'Don\'t be long.',
    maxOutputTokens: 2000,
    httpOptions: {
      extraBody: {
        generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } },
      },
    },
  },
});
for await (const chunk of stream) process.stdout.write(chunk.text ?? '');
