import type { Target } from '../config/types.js';

/** What an upstream did not have may have come with its next version. */
const rememberedMs = 3_600_000;
/** What an error says that is about something else than the path. */
const otherThings = ['model_not_found', 'thread_not_found', 'previous_response_not_found'];
/** An error that says what is missing says it in so many bytes. */
const longestError = 4096;

/**
 * Which targets do not have an endpoint of the protocol that they speak, as this worker has seen it. Those of another
 * config begin anew, and the number of endpoints bounds what is kept of each.
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

  /** Whether a target has said so of late. Parameters as of `note`. */
  has(target: Target, endpoint: object, now: number): boolean {
    const until = this.#byTarget.get(target)?.get(endpoint);
    return until !== undefined && now < until;
  }
}

/**
 * Whether an error answer says that the upstream does not have what was asked for under a path: any 405, and a 404 that
 * is not about something that the request names. An upstream that does not have the model, a file or an item says so in
 * a 404 as well, and names it.
 * @param body of the answer, as much of it as has come
 * @param path that was asked, which an answer may quote and which may hold the model's name
 * @param request body of the request; null where it is not at hand
 */
export function saysItLacks(
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

/** Whether a text has a word that looks like an id and stands in the request. */
function namesAnId(text: string, request: Buffer | null): boolean {
  for (const [word] of text.matchAll(/[A-Za-z0-9_-]{6,}/g))
    if (/[0-9_-]/.test(word) && request?.includes(word) === true) return true;
  return false;
}

/** Whether a text has a name as a word of its own. */
function names(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + 1))
    if (!isOfWord(text, at - 1) && !isOfWord(text, at + name.length)) return true;
  return false;
}

function isOfWord(text: string, at: number): boolean {
  return /^[\p{L}\p{N}_]$/u.test(text.charAt(at));
}
