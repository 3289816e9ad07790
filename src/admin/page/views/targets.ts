import { h } from '../dom.js';
import type { View } from '../view.js';

/** Targets. */
export function createTargetsView(): View {
  return { element: h('section', {}, h('h2', {}, 'Targets')) };
}
