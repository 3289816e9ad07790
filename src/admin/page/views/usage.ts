import { h } from '../dom.js';
import type { View } from '../view.js';

/** Usage. */
export function createUsageView(): View {
  return { element: h('section', {}, h('h2', {}, 'Usage')) };
}
