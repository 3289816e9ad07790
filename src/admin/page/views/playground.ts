import { h } from '../dom.js';
import type { View } from '../view.js';

/** Playground. */
export function createPlaygroundView(): View {
  return { element: h('section', {}, h('h2', {}, 'Playground')) };
}
