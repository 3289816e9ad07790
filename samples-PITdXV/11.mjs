import { writeFile } from 'node:fs/promises';
import { GoogleGenAI } from 'genai3';

const client = new GoogleGenAI({
  apiKey: process.env.GATEWAY_KEY,
  httpOptions: { baseUrl: 'http://127.0.0.1:44837' },
});
const response = await client.models.generateContent({
  model: 'sim-image',
  contents: [
    {
      role: 'user',
      parts: [{ text: 'What\'s "a gateway"? $HOME `id` \\ — 漢字\nsecond line' }],
    },
  ],
  config: {
    responseModalities: ['TEXT', 'IMAGE'],
    imageConfig: { aspectRatio: '16:9', imageSize: '1K' },
  },
});
for (const { inlineData } of response.candidates?.[0]?.content?.parts ?? []) {
  if (inlineData?.data) await writeFile('image.png', Buffer.from(inlineData.data, 'base64'));
}
