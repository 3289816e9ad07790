import { h } from '../dom.js';
import type { View } from '../view.js';

/** Config. */
export function createConfigView(): View {
  return { element: h('section', {}, h('h2', {}, 'Config')) };
}
