import type { TextProtocolName } from '../conversation/request.js';
import { chat } from './chat/index.js';
import { generateContent } from './generate-content/index.js';
import { messages } from './messages/index.js';
import type { Endpoint, Translation } from './protocol.js';
import { responses } from './responses/index.js';

/** The endpoints between which a conversation can be translated. */
export const textEndpoints: Readonly<
  Record<TextProtocolName, Endpoint & { readonly translation: Translation }>
> = {
  chat: translatable(chat),
  responses: translatable(responses),
  messages: translatable(messages),
  generateContent: translatable(generateContent),
};

function translatable(endpoint: Endpoint): Endpoint & { readonly translation: Translation } {
  const { translation } = endpoint;
  if (translation === null) throw new Error(`${endpoint.protocol} has no codec`);
  return { ...endpoint, translation };
}
