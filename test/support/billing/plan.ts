import { type TextProtocolName, textProtocols } from '../../../src/conversation/request.js';
import type { Integers } from '../seed.js';

/** What a vendor charges for, as units of one call. */
export interface Units {
  /** Tokens of input that were in no cache. */
  readonly fresh: number;
  readonly cached: number;
  readonly cacheWritten: number;
  /** Tokens of output, those of reasoning among them. */
  readonly output: number;
  readonly images: number;
  /** Of video. */
  readonly seconds: number;
}

export const noUnits: Units = { fresh: 0, cached: 0, cacheWritten: 0, output: 0, images: 0, seconds: 0 };

/** What the first target of a call does in place of an answer. */
export type Failure = 'status 500' | 'status 429' | 'hangs up' | 'silence';

/** When a client leaves: before the answer's head, after so many pieces of its text, or after the last one of them. */
export type Leave = 'never' | 'before the answer' | 'within the answer' | 'after the text';

/** A call of text: how it is asked and what its upstream does. */
export interface TextPlan {
  readonly kind: 'text';
  readonly number: number;
  /** The client's. */
  readonly protocol: TextProtocolName;
  /** The upstream's. */
  readonly upstream: TextProtocolName;
  readonly stream: boolean;
  /** The model answers with the call of a tool, too. */
  readonly tool: boolean;
  readonly failure: Failure | null;
  readonly leave: Leave;
  readonly units: Units;
  /** Of the output. */
  readonly reasoning: number;
  /** What the answer says, in pieces. */
  readonly pieces: readonly string[];
}

/** A call of another kind. A video that is refused or that fails is not charged. */
export interface OtherPlan {
  readonly kind: 'embeddings' | 'images' | 'video' | 'realtime';
  readonly number: number;
  readonly failure: 'refused' | 'fails later' | null;
  readonly units: Units;
}

export type CallPlan = TextPlan | OtherPlan;

const failures = ['status 500', 'status 429', 'hangs up', 'silence'] as const;
const leaves = ['before the answer', 'within the answer', 'after the text'] as const;
const others = ['embeddings', 'images', 'video', 'realtime'] as const;
const latin = 'some words that a model would say to a user, ';
const han = '你好，世界。今天的天气很好，';

/** The call of that number, drawn by lot. */
export function drawCall(number: number, below: Integers): CallPlan {
  return below(8) === 0 ? drawOther(number, below) : drawText(number, below);
}

function drawText(number: number, below: Integers): TextPlan {
  const stream = below(2) === 0;
  const pieces = drawPieces(below);
  const reasoning = below(3) === 0 ? 1 + below(200) : 0;
  // A client that leaves meets a target that does not fail: one cause of a difference a call.
  const leave = below(8) === 0 ? oneOf(leaves, below) : 'never';
  return {
    kind: 'text',
    number,
    protocol: oneOf(textProtocols, below),
    upstream: oneOf(textProtocols, below),
    stream,
    tool: below(6) === 0,
    failure: leave === 'never' && below(10) === 0 ? drawFailure(below) : null,
    leave: stream || leave === 'never' ? leave : 'before the answer',
    units: {
      ...noUnits,
      fresh: 100 + below(2000),
      cached: below(3) === 0 ? 1 + below(5000) : 0,
      cacheWritten: below(4) === 0 ? 1 + below(3000) : 0,
      output: tokensOf(pieces.join('')) + reasoning,
    },
    reasoning,
    pieces,
  };
}

/** Silence takes seconds to be found out, so it is rare. */
function drawFailure(below: Integers): Failure {
  const failure = oneOf(failures, below);
  return failure === 'silence' && below(4) > 0 ? 'hangs up' : failure;
}

function drawOther(number: number, below: Integers): OtherPlan {
  const kind = oneOf(others, below);
  const fails = below(4) === 0;
  switch (kind) {
    case 'embeddings':
      return {
        kind,
        number,
        failure: fails ? 'refused' : null,
        units: { ...noUnits, fresh: 1 + below(500) },
      };
    case 'images':
      return { kind, number, failure: fails ? 'refused' : null, units: { ...noUnits, images: 1 + below(3) } };
    case 'video':
      return {
        kind,
        number,
        failure: fails ? oneOf(['refused', 'fails later'], below) : null,
        units: { ...noUnits, seconds: 4 * (1 + below(3)) },
      };
    case 'realtime':
      return {
        kind,
        number,
        failure: null,
        units: { ...noUnits, fresh: 10 + below(300), output: 1 + below(300) },
      };
  }
}

function drawPieces(below: Integers): readonly string[] {
  const script = below(4) === 0 ? han : latin;
  return Array.from({ length: 2 + below(12) }, () => script.slice(0, 4 + below(script.length - 4)));
}

/** What a text counts: a token for four letters, and one for each sign of a script of East Asia. */
export function tokensOf(text: string): number {
  let quarters = 0;
  for (const sign of text) quarters += (sign.codePointAt(0) ?? 0) >= 0x2e80 ? 4 : 1;
  return Math.ceil(quarters / 4);
}

function oneOf<Value>(values: readonly Value[], below: Integers): Value {
  return values[below(values.length)] as Value;
}
