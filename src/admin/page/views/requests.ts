import { h } from '../dom.js';
import type { View } from '../view.js';

/** Requests. */
export function createRequestsView(): View {
  return { element: h('section', {}, h('h2', {}, 'Requests')) };
}
