import { h } from '../../dom.js';
import type { KindSettings } from './chat-settings.js';
import { field, numberIn, numberInput, select } from './fields.js';
import {
  type ImageSettings,
  imageRatios,
  imageResolutions,
  imageSizes,
  type SpeechSettings,
  speechFormats,
} from './media-request.js';
import { type VideoSettings, videoSizes } from './video-request.js';

const voices = ['alloy', 'ash', 'coral', 'echo', 'fable', 'nova', 'onyx', 'sage', 'shimmer'];

export function createImageSettings(onChange: () => void): KindSettings<ImageSettings> {
  const size = select([['', 'Unset'], ...imageSizes.map(same)], onChange);
  size.value = '1024x1024';
  const result = select(
    [
      ['b64_json', 'Base64'],
      ['url', 'Address'],
      ['', 'Unset'],
    ],
    onChange,
  );
  const ratio = select([['', 'Unset'], ...imageRatios.map(same)], onChange);
  ratio.value = '1:1';
  const resolution = select([['', 'Unset'], ...imageResolutions.map(same)], onChange);
  const ofImages = [field('Size', size), field('Answer with', result)];
  const ofGenerateContent = [field('Ratio', ratio), field('Resolution', resolution)];
  return {
    element: h('div', { class: 'settings pair' }, ...ofImages, ...ofGenerateContent),
    read: () => ({
      size: size.value,
      result: result.value as ImageSettings['result'],
      ratio: ratio.value,
      resolution: resolution.value,
    }),
    problem: () => null,
    showProtocol(protocol) {
      const isGenerateContent = protocol === 'generateContent';
      for (const each of ofImages) each.hidden = isGenerateContent;
      for (const each of ofGenerateContent) each.hidden = !isGenerateContent;
    },
  };
}

export function createSpeechSettings(onChange: () => void): KindSettings<SpeechSettings> {
  const list = h('datalist', { id: 'playground-voices' }, ...voices.map((value) => h('option', { value })));
  const voice = h('input', {
    value: voices[0] as string,
    attributes: { list: list.id },
    on: { input: onChange },
  });
  const format = select(
    speechFormats.map((name) => [name, name === 'pcm' ? 'pcm (to download)' : name]),
    onChange,
  );
  const speed = numberInput({ min: 0.25, max: 4, step: 0.05, placeholder: '1' }, onChange);
  return {
    element: h(
      'div',
      { class: 'settings pair' },
      field('Voice', voice),
      list,
      field('Format', format),
      field('Speed', speed),
    ),
    read: () => ({ voice: voice.value.trim(), format: format.value, speed: numberIn(speed) }),
    problem: () => {
      if (voice.value.trim() === '') return 'A speech needs a voice.';
      const { badInput, rangeUnderflow, rangeOverflow } = speed.validity;
      return badInput || rangeUnderflow || rangeOverflow ? 'Speed must be from 0.25 to 4.' : null;
    },
  };
}

export function createVideoSettings(onChange: () => void): KindSettings<VideoSettings> {
  const size = select(Object.keys(videoSizes).map(same), onChange);
  const seconds = numberInput({ min: 1, max: 60, value: '4' }, onChange);
  return {
    element: h('div', { class: 'settings pair' }, field('Size', size), field('Seconds', seconds)),
    read: () => ({ size: size.value, seconds: numberIn(seconds) ?? 4 }),
    problem: () =>
      seconds.validity.valid && seconds.value !== '' ? null : 'Seconds must be a whole number from 1 to 60.',
  };
}

function same(name: string): readonly [string, string] {
  return [name, name];
}
