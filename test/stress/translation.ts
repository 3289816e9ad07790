import { loadKey } from '../support/load/request.js';
import { type SlowReadersFigures, type SlowReadersPlan, slowReaders } from './slow-readers.js';

/** Bodies and paths of the clients whose streams are translated from chat, each with its prompt. */
const clients = [
  (prompt: string) => ({
    path: '/v1/messages',
    body: { model: 'm', max_tokens: 1000, stream: true, messages: [{ role: 'user', content: prompt }] },
  }),
  (prompt: string) => ({
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    body: { contents: [{ role: 'user', parts: [{ text: prompt }] }] },
  }),
];

/** Requests in other protocols than the upstream's, for a stream at full speed. */
function floods(megabytes: number): readonly Buffer[] {
  return clients.map((client) => {
    const { path, body } = client(`order does=flood&megabytes=${megabytes} `);
    const text = JSON.stringify(body);
    return Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: load\r\nauthorization: Bearer ${loadKey}\r\n` +
        `anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
  });
}

/** Clients of messages and generateContent that read much more slowly than a chat upstream writes. */
export function slowTranslations(plan: Omit<SlowReadersPlan, 'requests'>): Promise<SlowReadersFigures> {
  return slowReaders({ ...plan, requests: floods });
}
