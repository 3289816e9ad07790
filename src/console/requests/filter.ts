import type { RecentRequestView } from '../../metrics/live-state.js';
import type { Tone } from '../targets/target.js';

/** A filter of the recent requests. */
interface RequestFilter {
  /** Part of an id, model, key or path, ignoring case; all words have to match. */
  readonly text: string;
  /** Only failed requests. */
  readonly errorsOnly: boolean;
}

/** The requests that match a filter, in order. */
export function filterRequests(
  requests: readonly RecentRequestView[],
  { text, errorsOnly }: RequestFilter,
): readonly RecentRequestView[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return requests.filter((request) => {
    if (errorsOnly && !isError(request)) return false;
    if (words.length === 0) return true;
    const { id, model, key, path } = request;
    const all = `${id} ${model ?? ''} ${key ?? ''} ${path}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

/** The tone of a request: failed by the gateway or an upstream, the caller's mistake, cancelled, or successful. */
export function toneOf({ status, outcome }: RecentRequestView): Tone {
  if (status >= 500 || outcome === 'upstream_error') return 'bad';
  // A stream that the gateway itself broke off.
  if (outcome === 'refused' && status >= 200 && status < 300) return 'bad';
  if (outcome === 'client_gone') return 'idle';
  return status >= 400 ? 'warn' : 'good';
}

function isError(request: RecentRequestView): boolean {
  const tone = toneOf(request);
  return tone === 'bad' || tone === 'warn';
}
