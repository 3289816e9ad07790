import type { Target } from '../config/types.js';

/** How long a missing endpoint is remembered: the upstream's next version may have it. */
const rememberedMs = 3_600_000;
/** Codes of errors that are about something other than the path. */
const otherThings = ['model_not_found', 'thread_not_found', 'previous_response_not_found'];
/** Errors that name what is missing are no longer than this. */
const longestError = 4096;

/**
 * Remembers which targets lack an endpoint of their protocol, as seen by this worker. Targets of another config start anew.
 * The number of endpoints bounds what is kept for each target.
 */
export class LackingEndpoints {
  readonly #byTarget = new WeakMap<Target, Map<object, number>>();

  /**
   * @param endpoint its one description
   * @param now milliseconds of `performance.now()`
   */
  note(target: Target, endpoint: object, now: number): void {
    const known = this.#byTarget.get(target) ?? new Map<object, number>();
    this.#byTarget.set(target, known.set(endpoint, now + rememberedMs));
  }

  /** Whether a target has recently reported that it lacks the endpoint. Parameters as of `note`. */
  has(target: Target, endpoint: object, now: number): boolean {
    const until = this.#byTarget.get(target)?.get(endpoint);
    return until !== undefined && now < until;
  }
}

/**
 * Whether an error answer says that the upstream lacks the requested path: any 405, and a 404 that is not about something
 * that the request names. An upstream that lacks the model, a file or an item also answers with a 404, but names it.
 * @param body of the answer, the part of it that has arrived
 * @param path of the request, which an answer may quote and which may hold the model's name
 * @param request body of the request; null if it is not in memory
 */
export function reportsMissingEndpoint(
  status: number,
  body: Buffer,
  {
    model,
    path,
    request,
  }: { readonly model: string; readonly path: string; readonly request: Buffer | null },
): boolean {
  if (status === 405) return true;
  if (status !== 404) return false;
  const text = body.toString('utf8', 0, longestError).replaceAll('\\/', '/');
  const words = text.replaceAll(path, '');
  return (
    !otherThings.some((code) => text.includes(code)) && !names(words, model) && !namesAnId(words, request)
  );
}

/** Whether a text contains a word that looks like an id and occurs in the request. */
function namesAnId(text: string, request: Buffer | null): boolean {
  for (const [word] of text.matchAll(/[A-Za-z0-9_-]{6,}/g))
    if (/[0-9_-]/.test(word) && request?.includes(word) === true) return true;
  return false;
}

/** Whether a text contains a name as a separate word. */
function names(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + 1))
    if (!isOfWord(text, at - 1) && !isOfWord(text, at + name.length)) return true;
  return false;
}

function isOfWord(text: string, at: number): boolean {
  return /^[\p{L}\p{N}_]$/u.test(text.charAt(at));
}
