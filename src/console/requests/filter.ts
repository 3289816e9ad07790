import type { RecentRequestView } from '../../admin/live-state.js';
import type { Tone } from '../targets/target.js';

/** Which of the recent requests are wanted. */
interface RequestFilter {
  /** Part of an id, model, key or path, in any case; several words must all be there. */
  readonly text: string;
  /** Only those that did not go well. */
  readonly errorsOnly: boolean;
}

/** The requests that a filter lets through, in their order. */
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

/** How a request went: a failure of the gateway or an upstream, the caller's mistake, cut short, or well. */
export function toneOf({ status, outcome }: RecentRequestView): Tone {
  if (status >= 500 || outcome === 'upstream_error') return 'bad';
  // A stream that broke off by the gateway's own doing.
  if (outcome === 'refused' && status >= 200 && status < 300) return 'bad';
  if (outcome === 'client_gone') return 'idle';
  return status >= 400 ? 'warn' : 'good';
}

function isError(request: RecentRequestView): boolean {
  const tone = toneOf(request);
  return tone === 'bad' || tone === 'warn';
}
