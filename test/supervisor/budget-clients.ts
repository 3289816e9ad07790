import { setTimeout as pause } from 'node:timers/promises';
import { loadKeyHash } from '../support/load/request.js';
import { chatBody, type UsageGateway } from '../support/usage-gateway.js';

/** USD for a million tokens, of either kind: a token costs 250,000 nano-dollars. */
const price = { input: 250, output: 250 };
const nanosPerToken = 250_000;
/** A client stops when it was refused so many times in a row, each time after a pause. */
const mostRefusals = 10;
const pauseMs = 80;

/** The config's parts that hold the budget: a second of the model `m`, which makes videos, costs a tenth of a dollar. */
export function budgetConfig(usd: number): Record<string, unknown> {
  const targets = (model: string) => [{ upstream: 'studio', model }];
  return {
    models: {
      talk: { protocols: ['chat'], targets: targets('sim-text'), price },
      m: { protocols: ['video'], targets: targets('sim-video'), price: { perSecond: 0.1 } },
    },
    keys: [{ id: 'load', hash: loadKeyHash, groups: ['load'], budget: { usd, per: 'month' } }],
  };
}

/** What clients have seen. */
export interface Seen {
  /** Cost of the answers, by what these say of their usage, in nano-dollars. */
  cost: number;
  served: number;
  refused: number;
  /** Without an answer, or with one that says that nobody knows what is left. */
  failed: number;
}

/**
 * Has clients call until they are refused again and again.
 * @param seen is added to at once
 */
export async function hammer(
  gateways: readonly UsageGateway[],
  seen: Seen = { cost: 0, served: 0, refused: 0, failed: 0 },
  isOver: () => boolean = () => false,
): Promise<Seen> {
  const client = async (usage: UsageGateway): Promise<void> => {
    for (let refusals = 0; refusals < mostRefusals && !isOver(); ) {
      const status = await call(usage, seen);
      if (status === 200) refusals = 0;
      else await pause(pauseMs);
      if (status === 429) refusals++;
    }
  };
  await Promise.all(
    gateways.flatMap((usage) => Array.from({ length: 12 / gateways.length }, () => client(usage))),
  );
  return seen;
}

/**
 * @returns the status, or 0 where there was no whole answer
 * @throws Error for an answer that has nothing to do with the budget
 */
async function call(usage: UsageGateway, seen: Seen): Promise<number> {
  const { status, text } = await answerOf(usage);
  if (status === 200) {
    const { total_tokens: tokens } = (JSON.parse(text) as { usage: { total_tokens: number } }).usage;
    seen.cost += tokens * nanosPerToken;
    seen.served++;
  } else if (status === 429 && text.includes('budget')) seen.refused++;
  else if (status === 503 || status === 0) seen.failed++;
  else throw new Error(`${status}: ${text}`);
  return status;
}

async function answerOf(usage: UsageGateway): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const body = chatBody('[[fault:latency=0 rate=0]] hi', { max_tokens: 30 });
    const answer = await usage.post('/v1/chat/completions', body);
    return { status: answer.status, text: await answer.text() };
  } catch {
    return { status: 0, text: '' };
  }
}
