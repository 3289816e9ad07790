import type { Test } from 'tap';
import { type TextProtocolName, textProtocols } from '../../../src/conversation/request.js';
import { startGateway } from '../../support/gateway.js';
import { postJson } from '../../support/post-json.js';
import { simulate } from '../../support/simulator.js';
import { chatClient } from './chat-client.js';
import { type Answer, type Ask, type Client, failed } from './client.js';
import { generateContentClient } from './generate-content-client.js';
import { serveImage } from './image.js';
import { messagesClient } from './messages-client.js';
import { readReceived } from './received.js';
import { responsesClient } from './responses-client.js';
import type { Matrix, MatrixModel } from './scenario.js';

const clientOf: Readonly<Record<TextProtocolName, Client>> = {
  chat: chatClient,
  responses: responsesClient,
  messages: messagesClient,
  generateContent: generateContentClient,
};
export const clients: readonly Client[] = Object.values(clientOf);

export const models: readonly MatrixModel[] = [
  { name: 'on-chat', wire: () => 'chat' },
  // It takes responses calls untouched, and all others in chat.
  { name: 'on-responses', wire: (client) => (client === 'responses' ? 'responses' : 'chat') },
  { name: 'on-responses-only', wire: () => 'responses' },
  { name: 'on-messages', wire: () => 'messages' },
  { name: 'on-generate', wire: () => 'generateContent' },
];

/** Starts gateway, simulator and a server with an image, which end with the test. */
export async function startMatrix(t: Test): Promise<Matrix> {
  const simulator = await simulate(t);
  const base = `http://127.0.0.1:${simulator.port}`;
  const upstream = { apiKeys: ['upstream-key'], fetchPrivate: true };
  const model = (name: string, target: Record<string, unknown> = {}) => ({
    protocols: textProtocols,
    targets: [{ upstream: name, model: 'sim-text', ...target }],
  });
  const gateway = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: {
        chat: { kind: 'chat', baseUrl: `${base}/v1`, ...upstream },
        messages: { kind: 'messages', baseUrl: `${base}/v1`, ...upstream },
        generate: { kind: 'generateContent', baseUrl: `${base}/v1beta`, ...upstream },
      },
      models: {
        'on-chat': model('chat'),
        'on-responses': model('chat', { responses: true }),
        'on-responses-only': model('chat', { responses: 'only' }),
        'on-messages': model('messages'),
        'on-generate': model('generate'),
      },
    },
  });
  let leftOut: readonly string[] = [];
  const note = ({ headers }: Response) => {
    leftOut = headers.get('x-gateway-left-out')?.split(', ') ?? [];
  };
  return {
    imageUrl: await serveImage(t),
    send: (client, name, ask) => send({ url: gateway.url, note }, client, name, ask),
    leftOut: () => leftOut,
    received: () => readReceived(simulator.lastRequest()),
  };
}

interface Gateway {
  readonly url: string;
  /** Called with each answer's head. */
  note(response: Response): void;
}

/**
 * Returns the text of an answer. A stream may break off after its error: a client that detects errors only by the
 * connection would take a normal end for a complete answer.
 */
async function textOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const piece of body ?? []) text += decoder.decode(piece, { stream: true });
  } catch (fault) {
    if (!text.includes('"error"')) throw fault;
    // Another line feed ensures that the event was sent before the connection is broken.
    return `${text.trimEnd()}\n\n`;
  }
  return text;
}

async function send({ url, note }: Gateway, client: Client, model: string, ask: Ask): Promise<Answer> {
  const request = client.request(model, ask);
  const response = await postJson(url + request.path, request.body, request.headers);
  note(response);
  const text = await textOf(response);
  const type = response.headers.get('content-type') ?? '';
  if (!response.ok) {
    return failed({
      ...client.readError(JSON.parse(text)),
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
    });
  }
  const expected = ask.stream ? 'text/event-stream' : 'application/json';
  if (!type.startsWith(expected)) throw new Error(`the answer is ${type}, not ${expected}`);
  return ask.stream ? client.readStream(text) : client.readWhole(JSON.parse(text));
}
