import type { AnswerContext } from '../../conversation/codec.js';
import type { Usage } from '../../conversation/usage.js';
import { encodeUsage } from './answer/usage.js';

/**
 * Clients of vendors that tell the usage of a stream without being asked, in the chunk with the reason for its end. They
 * do not ask, and some fail on a chunk without a choice (`ai-sdk/mistral`).
 */
const toldClients = [
  ...['ai-sdk/mistral/', 'mistral-client-', 'mistralai', 'ai-sdk/openrouter/', 'ai-sdk/perplexity/'],
  ...['@openrouter/sdk', 'ai-sdk/cerebras/', 'Cerebras/'],
];
/** These read it in a member of their vendor's (https://console.groq.com/docs/api-reference#chat-create). */
const groqClients = ['ai-sdk/groq/', 'Groq/'];

/** How a stream ends: the reasons of its choices, and the usage where a client gets one. */
interface Ending {
  /** @returns what is written for the chunk with a choice's reason */
  finish(chunk: string): string;
  /** @returns what stands before an error */
  broken(usage: Usage | null): string;
  /** @returns what stands before the end */
  last(usage: Usage | null): string;
}

/**
 * @param head the beginning of each chunk, up to its choices
 * @param tail what each chunk ends with
 */
export function createEnding(context: AnswerContext, head: string, tail: string): Ending {
  const { includeUsage, userAgent = '' } = context;
  const isIn = (clients: readonly string[]) => clients.some((name) => userAgent.includes(name));
  if (includeUsage) return askedUsage(head);
  const isOfGroq = isIn(groqClients);
  return isOfGroq || isIn(toldClients) ? new ToldUsage(tail, isOfGroq) : noUsage;
}

const noUsage: Ending = { finish: (chunk) => chunk, broken: () => '', last: () => '' };

/** OpenAI's own form: a chunk of its own. */
function askedUsage(head: string): Ending {
  return {
    ...noUsage,
    last: (usage) => (usage === null ? '' : `${head}],"usage":${encodeUsage(usage)}}\n\n`),
  };
}

/** Holds the chunk with the last reason until the usage is known. */
class ToldUsage implements Ending {
  readonly #tail: string;
  readonly #isOfGroq: boolean;
  #chunk = '';

  constructor(tail: string, isOfGroq: boolean) {
    this.#tail = tail;
    this.#isOfGroq = isOfGroq;
  }

  /** @returns the chunk that was held before, which is then that of another choice */
  finish(chunk: string): string {
    const earlier = this.#chunk;
    this.#chunk = chunk;
    return earlier;
  }

  broken(usage: Usage | null): string {
    return this.last(usage);
  }

  last(usage: Usage | null): string {
    const chunk = this.finish('');
    if (chunk === '' || usage === null) return chunk;
    const told = encodeUsage(usage);
    const ofGroq = this.#isOfGroq ? `,"x_groq":{"usage":${told}}` : '';
    return `${chunk.slice(0, -this.#tail.length)}],"usage":${told}${ofGroq}}\n\n`;
  }
}
