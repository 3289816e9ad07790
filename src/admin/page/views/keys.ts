import { h } from '../dom.js';
import type { View } from '../view.js';

/** Keys. */
export function createKeysView(): View {
  return { element: h('section', {}, h('h2', {}, 'Keys')) };
}
