import type { Test } from 'tap';
import { postJson } from '../post-json.js';

/** A call of each text protocol. Its model has the name of its upstream's kind. */
export interface PricedCall {
  readonly name: string;
  /** Kind of the upstream. */
  readonly kind: 'chat' | 'messages' | 'generateContent' | 'responses';
  /** MODEL in it stands for the model's name. */
  readonly path: string;
  readonly body: object;
}

const hello = [{ role: 'user', content: 'hi' }];
export const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];
export const askChat = { path: '/v1/chat/completions', body: { messages: hello } };
export const askResponses = { path: '/v1/responses', body: { input: 'hi' } };
export const askMessages = { path: '/v1/messages', body: { max_tokens: 9, messages: hello } };
export const askGoogle = { path: '/v1beta/models/MODEL:generateContent', body: { contents } };

export function streamed<Ask extends { readonly body: object }>(ask: Ask): Ask {
  return { ...ask, body: { ...ask.body, stream: true } };
}

/** Makes a call, which must succeed. @returns its request id */
export async function callPriced(
  t: Test,
  url: string,
  { name, kind, path, body }: PricedCall,
): Promise<string> {
  const answered = await postJson(
    url + path.replace('MODEL', kind),
    { model: kind, ...body },
    { 'anthropic-version': '2023-06-01' },
  );
  const text = await answered.text();
  t.equal(answered.status, 200, `${name}: ${text.slice(0, 300)}`);
  return answered.headers.get('x-request-id') ?? '';
}
