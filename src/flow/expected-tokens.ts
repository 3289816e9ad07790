import { GatewayError } from '../errors.js';
import type { Endpoint } from '../protocols/protocol.js';
import { findValues, type Span, scanBody } from '../wire/json-scan.js';
import type { Call } from './call.js';

const bytesOfToken = 4;
/** An image or a recording, whatever its size. */
const mediumTokens = 1500;
/** A string longer than this is looked at, whether it begins as text does. */
const mediumBytes = 4096;
const beginning = 256;
/** Output of a call that sets no limit to it. */
const presumedOutput = 1000;
const space = 0x20;
const openBrace = 0x7b;

/**
 * The tokens for which a call is taken until its upstream has counted them: of what it says, by its length, and of
 * what it lets an upstream answer.
 */
export function expectedTokens(call: Call): number {
  const { body, route } = call;
  const endpoint = route?.endpoint;
  if (body === null || call.upload !== null || endpoint == null) return 1;
  try {
    return inputTokens(body) + outputTokens(body, endpoint);
  } catch (fault) {
    // A key that stands twice: what is used in the end will tell.
    if (fault instanceof GatewayError) return Math.ceil(body.length / bytesOfToken) + presumedOutput;
    throw fault;
  }
}

function inputTokens(body: Buffer): number {
  const { cuts } = scanBody(body);
  let text = body.length;
  let tokens = 0;
  for (let i = 0; i < cuts.length; i += 2) {
    const start = cuts[i] as number;
    const end = cuts[i + 1] as number;
    if (end - start < mediumBytes) continue;
    if (isText(body, start)) continue;
    text -= end - start;
    tokens += mediumTokens;
  }
  return tokens + Math.ceil(text / bytesOfToken);
}

/** Base64 has no spaces, and nothing beyond ASCII. */
function isText(body: Buffer, start: number): boolean {
  for (let at = start; at < start + beginning; at++) {
    const byte = body[at] as number;
    if (byte === space || byte >= 0x80) return true;
  }
  return false;
}

function outputTokens(body: Buffer, { outputLimit }: Endpoint): number {
  if (outputLimit === null) return 0;
  const { within, fields } = outputLimit;
  let from = scanBody(body).open - 1;
  if (within !== null) {
    const [inner] = findValues(body, from, [within]);
    if (inner == null || body[inner.start] !== openBrace) return presumedOutput;
    from = inner.start;
  }
  const [choices, ...limits] = findValues(body, from, [outputLimit.choices, ...fields]);
  const most = limits.map((span) => numberAt(body, span)).find((value) => value !== null) ?? presumedOutput;
  return most * (numberAt(body, choices ?? null) ?? 1);
}

function numberAt(body: Buffer, span: Span | null): number | null {
  if (span === null) return null;
  const value = Number(body.toString('latin1', span.start, span.end));
  return Number.isSafeInteger(value) && value > 0 ? value : null;
}
