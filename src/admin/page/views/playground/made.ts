import { h } from '../../dom.js';

/** An image with a link to keep it. */
export function shownImage(url: string, prompt: string, file: string): Node {
  return h('figure', {}, h('img', { src: url, alt: prompt }), saveLink(url, file));
}

export function shownAudio(url: string, file: string): Node {
  const audio = h('audio', { src: url, controls: true, attributes: { 'aria-label': 'Speech' } });
  return h('figure', {}, audio, saveLink(url, file));
}

export function shownVideo(url: string, file: string): Node {
  const video = h('video', { src: url, controls: true, attributes: { 'aria-label': 'Video' } });
  return h('figure', {}, video, saveLink(url, file));
}

export function saveLink(url: string, file: string): HTMLAnchorElement {
  return h('a', { class: 'button', href: url, download: file }, `Download ${file}`);
}
