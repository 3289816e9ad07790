import { createHash } from 'node:crypto';
import { type Directive, DirectiveError, directiveValue, findDirective } from './directives.js';
import { applyFaults } from './faults.js';
import { parseObject } from './json-body.js';
import { OpenAiError, openAiErrorBody } from './openai-error.js';
import type { Pace } from './realtime-play.js';
import type { Reply, Step } from './reply.js';
import { createResponse } from './responses.js';
import type { SocketLine } from './socket-line.js';

const mostWaitingTurns = 100;

export interface ResponsesSocketParts {
  readonly line: SocketLine;
  readonly pace: Pace;
  isDue(directive: Directive): boolean;
}

/**
 * Gives responses on an open socket, one after the other: each event of the stream is a message. The directives are
 * those of `faults.ts`; of them only those about streams mean something here, `status` gives an error message, and
 * `close=CODE` closes the socket.
 */
export function serveResponses(parts: ResponsesSocketParts): void {
  const { line } = parts;
  let waiting = 0;
  let turns = Promise.resolve();
  const hear = (message: Buffer): void => {
    if (waiting === mostWaitingTurns) {
      line.send(errorMessage(new OpenAiError(429, `More than ${mostWaitingTurns} responses are waiting.`)));
      return;
    }
    waiting += 1;
    turns = turns
      .then(() => answer(parts, message))
      .catch(() => line.reset())
      .finally(() => {
        waiting -= 1;
      });
  };
  line.listen((message, isBinary) => {
    if (isBinary) {
      line.send(errorMessage(new OpenAiError(400, 'Binary messages are not supported.')));
    } else {
      hear(message);
    }
    line.holdWhenFull();
  });
}

async function answer(parts: ResponsesSocketParts, message: Buffer): Promise<void> {
  try {
    const { type, stream: _, ...fields } = parseObject(message);
    if (type !== 'response.create') {
      const told = `Invalid value: '${String(type)}'. Supported values are: 'response.create'.`;
      throw new OpenAiError(400, told, 'type', 'invalid_value');
    }
    const digest = createHash('sha256').update(message).digest('hex');
    const reply = createResponse({ body: { ...fields, stream: true }, digest, directives: [] });
    const directives = reply.directives.filter(parts.isDue);
    await give(parts, await applyFaults(reply, directives));
    const close = findDirective(directives, 'close');
    if (close !== undefined) {
      parts.line.close(directiveValue(close, 'code', 1000), close.options.get('reason') ?? '');
    }
  } catch (error) {
    if (error instanceof OpenAiError) {
      parts.line.send(errorMessage(error));
    } else if (error instanceof DirectiveError) {
      parts.line.send(errorMessage(new OpenAiError(400, error.message, null, 'unknown_fault')));
    } else {
      throw error;
    }
  }
}

function errorMessage(error: OpenAiError): string {
  return JSON.stringify({
    type: 'error',
    status: error.status,
    ...(JSON.parse(openAiErrorBody(error)) as object),
  });
}

async function give(parts: ResponsesSocketParts, reply: Reply): Promise<void> {
  const { line, pace } = parts;
  const latencyMs = reply.latencyMs ?? pace.latencyMs;
  const rate = reply.tokensPerSecond ?? pace.tokensPerSecond;
  if (latencyMs > 0) {
    await line.wait(latencyMs);
  }
  const started = performance.now();
  let tokens = 0;
  for await (const step of stepsOf(reply)) {
    if (step.kind === 'data' && step.tokens > 0 && rate > 0) {
      tokens += step.tokens;
      const early = started + (tokens * 1000) / rate - performance.now();
      if (early >= 1) {
        await line.wait(early);
      }
    }
    if (line.closed) {
      return;
    }
    await take(line, step, reply);
  }
}

async function* stepsOf(reply: Reply): AsyncGenerator<Step> {
  yield* reply.before;
  yield* reply.steps;
  yield* reply.after;
}

async function take(line: SocketLine, step: Step, reply: Reply): Promise<void> {
  switch (step.kind) {
    case 'data': {
      const text = step.bytes.toString();
      line.send(reply.stream ? dataOf(text) : refusalOf(reply.status, text));
      return line.wait('drain');
    }
    case 'wait':
      return line.wait(step.ms);
    case 'hang':
      return line.wait('end');
    case 'reset':
      return line.reset();
    case 'disconnect':
      return line.cut();
    case 'raw':
    case 'spoil':
  }
}

/** The JSON in the text of a server-sent event. */
function dataOf(event: string): string {
  return event.slice(event.indexOf('data: ') + 'data: '.length).trimEnd();
}

function refusalOf(status: number, body: string): string {
  return JSON.stringify({ type: 'error', status, ...(JSON.parse(body) as object) });
}
