import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Test } from 'tap';
import type { TextProtocolName } from '../../../src/conversation/request.js';
import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { startHttpUpstream } from '../upstream.js';
import { type Asked, BrokenRule, rule } from './asked.js';
import { readChat, writeChat } from './chat.js';
import { readGenerateContent, writeGenerateContent } from './generate-content.js';
import { type Memory, newMemory } from './memory.js';
import { readMessages, writeMessages } from './messages.js';
import type { Reply, Written } from './reply.js';
import { readResponses, writeResponses } from './responses.js';
import { replyTo } from './script.js';

/** A request that reached the upstream. */
export interface Heard {
  readonly path: string;
  readonly body: string;
  /** The rule that it broke, or null. */
  readonly broken: string | null;
}

export interface StrictUpstream {
  readonly origin: string;
  readonly heard: readonly Heard[];
  /** Cells whose first answer has failed. */
  readonly failed: ReadonlySet<string>;
}

type Writer = (reply: Reply, asked: Asked, memory: Memory) => Written;
const writers: Readonly<Record<TextProtocolName, Writer>> = {
  chat: writeChat,
  responses: writeResponses,
  messages: writeMessages,
  generateContent: writeGenerateContent,
};

/**
 * An upstream of all four protocols of texts that holds a request against its vendor's rules, answers what breaks one
 * as that vendor does, and follows the script of `script.ts` otherwise. It ends with the test.
 */
export async function startStrictUpstream(t: Pick<Test, 'teardown'>): Promise<StrictUpstream> {
  const memory = newMemory();
  const heard: Heard[] = [];
  const { origin } = await startHttpUpstream(t, (request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('error', () => {});
    request.on('end', () => {
      const body = Buffer.concat(pieces).toString();
      const path = request.url ?? '';
      let broken: string | null = null;
      try {
        serve(request, response, JSON.parse(body) as JsonObject, memory);
      } catch (fault) {
        broken = fault instanceof BrokenRule ? fault.message : String(fault);
        refuse(response, path, 400, broken);
      }
      heard.push({ path, body, broken });
    });
  });
  return { origin, heard, failed: memory.failed };
}

function readAsked(request: IncomingMessage, body: JsonObject, memory: Memory): Asked {
  const path = request.url ?? '';
  if (path === '/v1/chat/completions') return readChat(body, memory);
  if (path === '/v1/responses') return readResponses(body, memory);
  if (/^\/v1\/messages(?:\?beta=true)?$/.test(path)) {
    rule(request.headers['anthropic-version'] !== undefined, 'anthropic-version: header is required');
    return readMessages(body, memory, String(request.headers['anthropic-beta'] ?? ''));
  }
  const [, model, method] =
    /^\/v1beta\/models\/([^:]+):(generateContent|streamGenerateContent\?alt=sse)$/.exec(path) ?? [];
  rule(model !== undefined, `no such path: ${path}`);
  return { ...readGenerateContent(body, memory), model, stream: method !== 'generateContent' };
}

/** A request whose input has all that was said before it. @throws BrokenRule for a response that is not known */
function continued(body: JsonObject, memory: Memory): JsonObject {
  const { previous_response_id: id, input } = body;
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  if (typeof id !== 'string' || !Array.isArray(items)) return body;
  const told = memory.told.get(id);
  rule(told !== undefined, `previous_response_id: Previous response with id '${id}' not found.`);
  return { ...body, input: [...told, ...items] };
}

function keep(body: JsonObject, answer: object, memory: Memory): void {
  const { id, output } = answer as JsonObject;
  if (body.store === false || typeof id !== 'string' || !Array.isArray(output)) return;
  const input = Array.isArray(body.input) ? body.input : [{ role: 'user', content: body.input }];
  memory.told.set(id, [...input, ...output].filter(isObject));
}

function serve(request: IncomingMessage, response: ServerResponse, sent: JsonObject, memory: Memory): void {
  if (/^\/v1beta\/models\/[^:]+:countTokens$/.test(request.url ?? '')) {
    readGenerateContent(isObject(sent.generateContentRequest) ? sent.generateContentRequest : sent, memory);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"totalTokens":30}');
    return;
  }
  const body = request.url === '/v1/responses' ? continued(sent, memory) : sent;
  const asked = readAsked(request, body, memory);
  const reply = replyTo(asked, memory);
  if (reply.isLimited === true) {
    refuse(response, request.url ?? '', 429, 'Too many requests.');
    return;
  }
  const { body: whole, events } = writers[asked.wire](reply, asked, memory);
  if (asked.wire === 'responses') keep(body, whole, memory);
  if (!asked.stream) {
    const text = JSON.stringify(whole);
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    });
    if (reply.isCut === true) response.write(text.slice(0, text.length / 2), () => response.destroy());
    else response.end(text);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (reply.isCut !== true) {
    response.end(events.join(''));
    return;
  }
  const until = events.findLastIndex(
    (event) => event.includes('before it has ended') || event.includes('This answer'),
  );
  response.write(events.slice(0, until).join(''), () => response.destroy());
}

/** Errors as each vendor writes them. */
function refuse(response: ServerResponse, path: string, status: number, message: string): void {
  const isLimited = status === 429;
  const type = isLimited ? 'rate_limit_error' : 'invalid_request_error';
  const openAi = {
    error: {
      message,
      type: isLimited ? 'requests' : type,
      param: null,
      code: isLimited ? 'rate_limit_exceeded' : null,
    },
  };
  const google = {
    error: { code: status, message, status: isLimited ? 'RESOURCE_EXHAUSTED' : 'INVALID_ARGUMENT' },
  };
  const anthropic = { type: 'error', error: { type, message }, request_id: 'req_1' };
  const body = path.startsWith('/v1beta/') ? google : path.startsWith('/v1/messages') ? anthropic : openAi;
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(isLimited ? { 'retry-after': '1' } : {}),
  });
  response.end(JSON.stringify(body));
}
