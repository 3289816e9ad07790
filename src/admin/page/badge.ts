import { fill, h, setText } from './dom.js';
import type { Tone } from './target.js';

/** Puts a badge into a cell, or other words and another tone on the one that is there. */
export function paintBadge(cell: HTMLElement, tone: Tone, text: string): void {
  let badge = cell.querySelector<HTMLElement>(':scope > .badge');
  if (badge === null) {
    badge = h('span', { class: 'badge' });
    fill(cell, [badge]);
  }
  badge.dataset.tone = tone;
  setText(badge, text);
}
