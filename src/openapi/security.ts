import type { VendorWords } from '../config/types.js';
import type { AuthStyle } from '../protocols/credentials/credentials.js';
import type { SecurityRequirement, SecurityScheme } from './types.js';

/** Where keys may sit: the schemes, and which of them each style of signing in takes. */
export interface Security {
  readonly schemes: Readonly<Record<string, SecurityScheme>>;
  readonly requirements: Readonly<Record<AuthStyle, readonly SecurityRequirement[]>>;
}

/** @param words real vendor words, each of which makes another header name */
export function describeSecurity(words: VendorWords): Security {
  const vendorgHeaders = [...new Set(['vendorg', ...words.vendorg])].map((word) => `x-${word}-api-key`);
  const vendorg = Object.fromEntries(
    vendorgHeaders.map((name) => [name, header(name, 'A key of the generateContent protocol.')]),
  );
  const anyOf = (...names: readonly string[]) => names.map((name): SecurityRequirement => ({ [name]: [] }));
  const google = [...vendorgHeaders, 'key'];
  return {
    schemes: {
      bearer: { type: 'http', scheme: 'bearer', description: 'An API key as a bearer token.' },
      'x-api-key': header('x-api-key', 'A key of the messages protocol, with a version header beside it.'),
      ...vendorg,
      key: {
        type: 'apiKey',
        in: 'query',
        name: 'key',
        description: 'A key of the generateContent protocol.',
      },
      socketProtocol: header(
        'sec-websocket-protocol',
        'For browsers, which can set no other header: `openai-insecure-api-key.` and the API key as one of the subprotocols.',
      ),
    },
    requirements: {
      bearer: anyOf('bearer'),
      messages: anyOf('x-api-key', 'bearer'),
      generateContent: anyOf(...google, 'bearer'),
      modelList: anyOf('bearer', 'x-api-key', ...google),
      realtime: anyOf('bearer', 'socketProtocol'),
    },
  };
}

function header(name: string, description: string): SecurityScheme {
  return { type: 'apiKey', in: 'header', name, description };
}
