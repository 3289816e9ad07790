import { h, setText } from './dom.js';

/** A small bar that shows a share, with words above it. */
export interface Meter {
  readonly element: HTMLElement;
  /**
   * @param share from 0; what is above 1 fills the bar
   * @param tone the bar's colour where it is not the usual one
   */
  update(text: string, share: number, tone?: 'warn' | 'bad'): void;
}

/** @param label names the bar for those who do not see it */
export function createMeter(label: string): Meter {
  const text = h('span', { class: 'meter-text' });
  const bar = h('span', { class: 'meter-bar' });
  const track = h(
    'span',
    {
      class: 'meter-track',
      attributes: { role: 'meter', 'aria-label': label, 'aria-valuemin': '0', 'aria-valuemax': '100' },
    },
    bar,
  );
  return {
    element: h('span', { class: 'meter' }, text, track),
    update(words, share, tone) {
      const percent = Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10;
      setText(text, words);
      bar.style.width = `${percent}%`;
      track.dataset.tone = tone ?? '';
      track.setAttribute('aria-valuenow', `${percent}`);
      track.setAttribute('aria-valuetext', words);
    },
  };
}
