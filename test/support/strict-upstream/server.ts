import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Test } from 'tap';
import type { TextProtocolName } from '../../../src/conversation/request.js';
import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { startHttpUpstream } from '../upstream.js';
import { type Asked, BrokenRule, rule } from './asked.js';
import { readChat, writeChat } from './chat.js';
import { compactionOf } from './compact.js';
import { readGenerateContent, writeGenerateContent } from './generate-content.js';
import { answerById, continued, keep } from './kept.js';
import { type Memory, newMemory } from './memory.js';
import { bindThinking, readMessages, writeMessages } from './messages.js';
import type { Reply, Written } from './reply.js';
import { readResponses, writeResponses } from './responses.js';
import { replyTo } from './script.js';

/** A request that reached the upstream. */
interface Heard {
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
 * An upstream of all four text protocols that checks requests by their vendor's rules, refuses them like that vendor,
 * and otherwise follows the script of `script.ts`. It ends with the test.
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
        const byId = answerById(request.method ?? '', path, memory);
        if (byId !== null) answer(response, byId);
        else serve(request, response, JSON.parse(body) as JsonObject, memory);
      } catch (fault) {
        const { message, status, code } = fault instanceof BrokenRule ? fault : new BrokenRule(String(fault));
        // A missing response is not a client's mistake: the client then sends the whole conversation.
        broken = status === 404 ? null : message;
        refuse(response, path, { status, message, code });
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
    return readMessages(body, memory, betasOf(request));
  }
  const [, model, method] =
    /^\/v1beta\/models\/([^:]+):(generateContent|streamGenerateContent\?alt=sse)$/.exec(path) ?? [];
  rule(model !== undefined, `no such path: ${path}`);
  return { ...readGenerateContent(body, memory), model, stream: method !== 'generateContent' };
}

function serve(request: IncomingMessage, response: ServerResponse, sent: JsonObject, memory: Memory): void {
  const path = request.url ?? '';
  const aside = countOf(request, sent, memory) ?? compactionOf(path, sent, memory);
  if (aside !== null) {
    answer(response, aside);
    return;
  }
  const body = continued(sent, memory);
  const asked = readAsked(request, body, memory);
  const reply = replyTo(asked, memory);
  if (reply.isLimited === true) {
    refuse(response, path, { status: 429, message: 'Too many requests.' });
    return;
  }
  const { body: whole, events } = writers[asked.wire](reply, asked, memory);
  keep(body, whole, memory);
  if (asked.wire === 'messages') bindThinking(body, whole as JsonObject, memory);
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

function betasOf({ headers }: IncomingMessage): string {
  return String(headers['anthropic-beta'] ?? '');
}

/**
 * @returns the answer to a request that counts tokens, which follows the rules of the counted request; null for any
 * other request
 */
function countOf(request: IncomingMessage, sent: JsonObject, memory: Memory): object | null {
  const path = request.url ?? '';
  if (/^\/v1beta\/models\/[^:]+:countTokens$/.test(path)) {
    readGenerateContent(isObject(sent.generateContentRequest) ? sent.generateContentRequest : sent, memory);
    return { totalTokens: 30 };
  }
  if (path === '/v1/responses/input_tokens') {
    readResponses(continued(sent, memory), memory);
    return { object: 'response.input_tokens', input_tokens: 30 };
  }
  if (!/^\/v1\/messages\/count_tokens(?:\?beta=true)?$/.test(path)) return null;
  rule(sent.max_tokens === undefined, 'max_tokens: Extra inputs are not permitted');
  readMessages({ ...continued(sent, memory), max_tokens: 65_536 }, memory, betasOf(request));
  return { input_tokens: 30 };
}

function answer(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

interface Refused {
  readonly status: number;
  readonly message: string;
  /** Details of a messages error. */
  readonly code?: string | undefined;
}

/** Errors in each vendor's form. */
function refuse(response: ServerResponse, path: string, { status, message, code }: Refused): void {
  const isLimited = status === 429;
  const lacks = path.startsWith('/v1/messages') ? 'not_found_error' : 'invalid_request_error';
  const type = isLimited ? 'rate_limit_error' : status === 404 ? lacks : 'invalid_request_error';
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
  const details = code === undefined ? {} : { details: { error_code: code } };
  const anthropic = { type: 'error', error: { type, message, ...details }, request_id: 'req_1' };
  const body = path.startsWith('/v1beta/') ? google : path.startsWith('/v1/messages') ? anthropic : openAi;
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(isLimited ? { 'retry-after': '1' } : {}),
  });
  response.end(JSON.stringify(body));
}
