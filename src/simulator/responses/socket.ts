import { createHash } from 'node:crypto';
import { type Directive, directiveValue, findDirective } from '../faults/directives.js';
import { applyFaults } from '../faults/faults.js';
import { type Pace, pacing } from '../http/pace.js';
import type { Reply, Step } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { parseObject } from '../http/route.js';
import { openaiFormat } from '../openai/format.js';
import { unsupported } from '../openai/values.js';
import type { SocketLine } from '../sockets/line.js';
import { createResponse } from './route.js';

const maxWaiting = 100;

interface ResponsesSocketParts {
  readonly line: SocketLine;
  readonly pace: Pace;
  isDue(directive: Directive): boolean;
}

/**
 * Serves responses on an open socket, one at a time; each event of the stream is a message. Of the directives in
 * `faults/faults.ts`, only those about streams apply here. `status` sends an error message, and `close=CODE` closes the
 * socket.
 */
export function serveResponses(parts: ResponsesSocketParts): void {
  const { line } = parts;
  const memory: Memory = { id: null, items: [] };
  let waiting = 0;
  let answers = Promise.resolve();
  const hear = (message: Buffer): void => {
    if (waiting === maxWaiting) {
      line.send(errorMessage(new RequestError(429, `More than ${maxWaiting} responses are waiting.`)));
      return;
    }
    waiting += 1;
    answers = answers
      .then(() => answer(parts, memory, message))
      .catch(() => line.reset())
      .finally(() => {
        waiting -= 1;
      });
  };
  line.listen((message, isBinary) => {
    if (isBinary) {
      line.send(errorMessage(new RequestError(400, 'Binary messages are not supported.')));
    } else {
      hear(message);
    }
    line.holdWhenFull();
  });
}

/** The newest response of a socket, which the next may continue, with the conversation before it. */
interface Memory {
  id: string | null;
  items: readonly unknown[];
}

async function answer(parts: ResponsesSocketParts, memory: Memory, message: Buffer): Promise<void> {
  try {
    const { type, stream: _, generate, ...fields } = parseObject(message);
    if (type !== 'response.create') throw unsupported(type, ['response.create'], 'type');
    const digest = createHash('sha256').update(message).digest('hex');
    const items = itemsOf(fields.input);
    const isKnown = memory.id !== null && fields.previous_response_id === memory.id;
    const said = isKnown ? [...memory.items, ...items] : items;
    if (generate === false) {
      const id = `resp_${digest.slice(0, 48)}`;
      for (const event of warmedUp(id, fields.model)) parts.line.send(JSON.stringify(event));
      Object.assign(memory, { id, items: said });
      return;
    }
    const body = isKnown ? { ...fields, previous_response_id: null, input: said } : fields;
    const reply = createResponse({ body: { ...body, stream: true }, digest, directives: [] });
    const directives = reply.directives.filter(parts.isDue);
    const made = await give(parts, await applyFaults(reply, directives));
    if (made !== null) Object.assign(memory, { id: made.id, items: [...said, ...made.output] });
    const close = findDirective(directives, 'close');
    if (close !== undefined) {
      parts.line.close(directiveValue(close, 'code', 1000), close.options.get('reason') ?? '');
    }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    parts.line.send(errorMessage(error));
  }
}

function errorMessage(error: RequestError): string {
  return refusalOf(error.status, openaiFormat.errorBody(error));
}

function itemsOf(input: unknown): readonly unknown[] {
  if (Array.isArray(input)) return input;
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : [];
}

/** The events of a warm-up, for which nothing is generated. */
function warmedUp(id: string, model: unknown): readonly object[] {
  const response = { id, object: 'response', created_at: Math.floor(Date.now() / 1000), model, output: [] };
  const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  return [
    {
      type: 'response.created',
      sequence_number: 0,
      response: { ...response, status: 'in_progress', usage: null },
    },
    { type: 'response.completed', sequence_number: 1, response: { ...response, status: 'completed', usage } },
  ];
}

interface MadeResponse {
  readonly id: string;
  readonly output: readonly unknown[];
}

/** @returns the response, or null if it did not end */
async function give(parts: ResponsesSocketParts, reply: Reply): Promise<MadeResponse | null> {
  let made: MadeResponse | null = null;
  const { line, pace } = parts;
  const latencyMs = reply.latencyMs ?? pace.latencyMs;
  if (latencyMs > 0) {
    await line.wait(latencyMs);
  }
  const untilDue = pacing(reply.tokensPerSecond ?? pace.tokensPerSecond);
  for await (const step of stepsOf(reply)) {
    const early = step.kind === 'data' ? untilDue(step.tokens) : 0;
    if (early > 0) await line.wait(early);
    if (line.closed) {
      return null;
    }
    made = madeBy(step, reply) ?? made;
    await take(line, step, reply);
  }
  return made;
}

/** The response in the event that ends it; null for every other step. */
function madeBy(step: Step, reply: Reply): MadeResponse | null {
  if (step.kind !== 'data' || !reply.stream) return null;
  const text = step.bytes.toString();
  if (!text.startsWith('event: response.completed')) return null;
  return (JSON.parse(dataOf(text)) as { response: MadeResponse }).response;
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
