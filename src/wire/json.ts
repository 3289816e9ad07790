/** A JSON object whose members are not known yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** True for a parsed JSON value that is an object: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Levels beyond which a text is taken for none: who reads or writes its value in turn would run out of stack. */
const mostDepth = 1000;

/** The text as a JSON object, or null when it is anything else, or nested deeper than any object that is meant. */
export function parseObject(text: string): JsonObject | null {
  if (text.length > 2 * mostDepth && isTooDeep(text)) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      at = endOfString(text, at + 1);
      if (at === -1) return false;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > mostDepth) return true;
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return false;
}

/** Where the string ends that `from` is in, or -1: long ones are passed over by the native search. */
function endOfString(text: string, from: number): number {
  for (let quote = text.indexOf('"', from); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let before = quote;
    while (before > from && text.charCodeAt(before - 1) === 0x5c) before--;
    if (((quote - before) & 1) === 0) return quote;
  }
  return -1;
}

/** The value when it is a string, else null. */
export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** The value when it is a finite number, else null. */
export function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** The value when it is a finite number above zero, else 0: for counts that an upstream may leave out or null. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY ? value : 0;
}
