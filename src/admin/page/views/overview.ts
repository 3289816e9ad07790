import { h } from '../dom.js';
import type { View } from '../view.js';

/** Overview. */
export function createOverviewView(): View {
  return { element: h('section', {}, h('h2', {}, 'Overview')) };
}
