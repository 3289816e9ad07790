import { h } from '../dom.js';
import type { View } from '../view.js';

/** Video tasks. */
export function createTasksView(): View {
  return { element: h('section', {}, h('h2', {}, 'Video tasks')) };
}
