import { type TextProtocolName, textProtocols } from '../../../src/conversation/request.js';
import { serviceTiers } from '../../../src/conversation/usage.js';
import type { Integers } from '../seed.js';
import { type MediaKind, mediaKinds, mediaTable } from './media.js';
import { noUnits, type Units } from './tariffs.js';

/**
 * What the first target of a call does in place of an answer. One that breaks off or falls silent has reported its
 * usage before, and bills it.
 */
type Failure = 'status 500' | 'status 429' | 'hangs up' | 'silence' | 'breaks off' | 'falls silent';

/** When a client leaves: before the answer's head, after a number of pieces of its text, or after the last piece. */
type Leave = 'never' | 'before the answer' | 'within the answer' | 'after the text';

/** A text call: the request, and what its upstream does. */
export interface TextPlan {
  readonly kind: 'text';
  readonly number: number;
  /** Protocol of the client. */
  readonly protocol: TextProtocolName;
  /** Protocol of the upstream. */
  readonly upstream: TextProtocolName;
  readonly stream: boolean;
  /** The model also calls a tool. */
  readonly tool: boolean;
  readonly failure: Failure | null;
  readonly leave: Leave;
  readonly units: Units;
  /** Tokens of the output. */
  readonly reasoning: number;
  /** The text of the answer, in pieces. */
  readonly pieces: readonly string[];
  /** The upstream reports no usage: the vendor bills the texts. */
  readonly isUntold: boolean;
}

/** A call of another kind. What is refused or fails is not charged. */
export interface OtherPlan {
  readonly kind: OtherKind;
  readonly number: number;
  readonly failure: 'refused' | 'fails later' | null;
  /** The client of a video or a session leaves before the answer. */
  readonly leaves: boolean;
  readonly units: Units;
}

type OtherKind = MediaKind | 'video' | 'realtime';
export type CallPlan = TextPlan | OtherPlan;

const failures = ['status 500', 'status 429', 'hangs up', 'silence'] as const;
const leaves = ['before the answer', 'within the answer', 'after the text'] as const;
const others: readonly OtherKind[] = [...mediaKinds, 'video', 'video', 'realtime', 'realtime'];
const latin = 'some words that a model would say to a user, ';
const han = '你好，世界。今天的天气很好，';

/** Draws the call of a number at random. */
export function drawCall(number: number, below: Integers): CallPlan {
  return below(4) === 0 ? drawOther(number, below) : drawText(number, below);
}

function drawText(number: number, below: Integers): TextPlan {
  const stream = below(2) === 0;
  const pieces = drawPieces(below);
  const reasoning = below(3) === 0 ? 1 + below(200) : 0;
  // A client that leaves has a target that does not fail, so that each call has one possible cause of a difference.
  const leave = below(8) === 0 ? oneOf(leaves, below) : 'never';
  const protocol = oneOf(textProtocols, below);
  const upstream = oneOf(textProtocols, below);
  // In an untouched stream, its first event is part of the answer, and no other target is tried.
  const tellsFirst = stream && upstream === 'messages' && protocol !== 'messages';
  const fails = leave === 'never' && below(tellsFirst ? 3 : 10) === 0;
  const failure = fails ? drawFailure(below, tellsFirst) : null;
  const isUntold = upstream === 'chat' && leave === 'never' && failure === null && below(4) === 0;
  return {
    kind: 'text',
    number,
    protocol,
    upstream,
    stream,
    tool: !isUntold && below(6) === 0,
    failure,
    leave: stream || leave === 'never' ? leave : 'before the answer',
    units: {
      ...noUnits,
      fresh: 100 + below(2000),
      cached: below(3) === 0 ? 1 + below(5000) : 0,
      cacheWritten: below(4) === 0 ? 1 + below(3000) : 0,
      output: tokensOf(pieces.join('')) + reasoning,
      // A client that leaves before these were reported is charged by an estimate, which cannot know them.
      ...(leave === 'never' ? drawExtras(below) : {}),
    },
    reasoning,
    pieces,
    isUntold,
  };
}

function drawExtras(below: Integers): Partial<Units> {
  return {
    cacheWrittenHour: below(5) === 0 ? 1 + below(2000) : 0,
    searches: below(6) === 0 ? 1 + below(3) : 0,
    tier: below(4) === 0 ? oneOf(serviceTiers, below) : 'standard',
  };
}

/**
 * Detecting silence takes seconds, so it is rare.
 * @param tellsFirst the answer begins with its usage
 */
function drawFailure(below: Integers, tellsFirst: boolean): Failure {
  const failure = oneOf(failures, below);
  const isSilent = failure === 'silence' && below(4) === 0;
  if (tellsFirst && below(4) > 0) return isSilent ? 'falls silent' : 'breaks off';
  return failure === 'silence' && !isSilent ? 'hangs up' : failure;
}

function drawOther(number: number, below: Integers): OtherPlan {
  const kind = oneOf(others, below);
  const fails = below(4) === 0;
  const mayLeave = kind === 'video' || kind === 'realtime';
  const failure = !fails || kind === 'realtime' ? null : drawRefusal(kind, below);
  const leaves = mayLeave && failure === null && below(4) === 0;
  return { kind, number, failure, leaves, units: drawUnits(kind, below) };
}

function drawRefusal(kind: OtherKind, below: Integers): OtherPlan['failure'] {
  return kind === 'video' ? oneOf(['refused', 'fails later'] as const, below) : 'refused';
}

function drawUnits(kind: OtherKind, below: Integers): Units {
  switch (kind) {
    case 'video':
      return {
        ...noUnits,
        units: 1,
        seconds: 4 * (1 + below(3)),
        variant: oneOf(['1280x720', '1920x1080', '1024x1024'], below),
      };
    case 'realtime':
      return {
        ...noUnits,
        fresh: 10 + below(300),
        cached: below(2) * below(200),
        output: 1 + below(300),
        audioInput: below(2) * below(900),
        cachedAudio: below(2) * below(400),
        audioOutput: below(2) * below(900),
      };
    default:
      return { ...noUnits, ...mediaTable[kind].draw(below) };
  }
}

function drawPieces(below: Integers): readonly string[] {
  const script = below(4) === 0 ? han : latin;
  return Array.from({ length: 2 + below(12) }, () => script.slice(0, 4 + below(script.length - 4)));
}

/** Returns the tokens of a text: one for four letters, and one for each character of an East Asian script. */
export function tokensOf(text: string): number {
  let quarters = 0;
  for (const sign of text) quarters += (sign.codePointAt(0) ?? 0) >= 0x2e80 ? 4 : 1;
  return Math.ceil(quarters / 4);
}

function oneOf<Value>(values: readonly Value[], below: Integers): Value {
  return values[below(values.length)] as Value;
}
