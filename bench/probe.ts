import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { request as requestSecurely } from 'node:https';
import { callerAt } from './callers.js';
import type { Running } from './contenders/contender.js';
import { completionBody, streamEvents } from './upstream/answers.js';

/** The first words of the upstream's whole answers, and the last word of its streamed ones. */
export const firstWords = 'The quick brown fox';
export const lastWord = ' word199';

/** The request that a contender gets throughout a work. */
export interface Question {
  readonly bodyFile: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Text that the answer contains, if it is not the upstream's own; else null. */
  readonly holds: string | null;
}

/** Returns a request whose answer is the upstream's own. */
export function asItComes(bodyFile: string, headers: Question['headers'] = {}): Question {
  return { bodyFile, headers, holds: null };
}

/**
 * Sends a contender one request and compares the answer with the upstream's: a fast contender with a wrong answer has
 * not won.
 * @throws Error with the wrong answer
 */
export async function probe(running: Running, question: Question): Promise<void> {
  const { status, text } = await ask(running, question);
  if (status !== 200) throw new Error(`the probe got ${status}: ${text.slice(0, 300)}`);
  const rewritten = text.startsWith('data:') ? lastWord : firstWords;
  const holds = question.holds ?? (running.rewrites ? rewritten : null);
  if (holds !== null) {
    if (!text.includes(holds)) throw new Error(`the probe got another answer: ${text.slice(0, 300)}`);
    return;
  }
  const expected = text.startsWith('data:') ? streamEvents().join('') : completionBody();
  if (text !== expected)
    throw new Error(`the probe got another answer than the upstream's: ${text.slice(0, 300)}`);
}

function ask(running: Running, question: Question): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const body = readFileSync(question.bodyFile);
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${callerAt(0).key}`,
      'content-length': body.length,
      ...question.headers,
      ...running.headers,
    };
    const { port, path, secure } = running;
    const options = { host: '127.0.0.1', port, path, method: 'POST', headers, rejectUnauthorized: false };
    const req = (secure ? requestSecurely : request)({ ...options, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('end', () => resolve({ status: res.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      res.on('error', reject);
    });
    req.setTimeout(15_000, () => req.destroy(new Error('the probe got no answer')));
    req.on('error', reject);
    req.end(body);
  });
}
