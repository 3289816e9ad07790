import { createChoice } from '../../choice.js';
import { fill, h, setText } from '../../dom.js';
import { createChatSettings } from './chat-settings.js';
import {
  type Choice,
  type Kind,
  modelsFor,
  type PlaygroundModel,
  type PlaygroundProtocol,
  protocolsOf,
} from './choice.js';
import { field, optionsOf, select } from './fields.js';
import { createImageSettings, createSpeechSettings, createVideoSettings } from './media-settings.js';

/** What is made, by which protocol and model, and how. */
export interface Settings {
  readonly element: HTMLElement;
  readonly kind: Kind;
  read(): Choice;
  /** @returns why nothing can be sent, or null */
  problem(): string | null;
  showModels(models: readonly PlaygroundModel[]): void;
}

const kinds: readonly (readonly [Kind, string])[] = [
  ['chat', 'Chat'],
  ['image', 'Image'],
  ['speech', 'Speech'],
  ['video', 'Video'],
];

/** @param onChange hears of every change */
export function createSettings(onChange: () => void): Settings {
  let models: readonly PlaygroundModel[] | null = null;
  const make = createChoice('Make', kinds, () => changeKind());
  const protocol = select([], () => changeProtocol());
  const model = select([], () => changeModel());
  const note = h('p', { class: 'problem', attributes: { role: 'status' } });
  const parts = {
    chat: createChatSettings(onChange),
    image: createImageSettings(onChange),
    speech: createSpeechSettings(onChange),
    video: createVideoSettings(onChange),
  };

  /** The choices of each kind are kept while another one is made. */
  const chosen = new Map<Kind, string>();
  const chosenModel = new Map<Kind, string>();

  const changeKind = (): void => {
    const options = protocolsOf[make.chosen];
    fill(protocol, optionsOf(options.map(({ name, title }) => [name, title])));
    protocol.value = chosen.get(make.chosen) ?? (options[0]?.name as string);
    for (const [kind, { element }] of Object.entries(parts)) element.hidden = kind !== make.chosen;
    changeProtocol();
  };
  const changeProtocol = (): void => {
    chosen.set(make.chosen, protocol.value);
    parts[make.chosen].showProtocol?.(protocol.value);
    const before = chosenModel.get(make.chosen) ?? '';
    const names = models === null ? [] : modelsFor(make.chosen, protocol.value as PlaygroundProtocol, models);
    fill(model, optionsOf(names.map((name) => [name, name])));
    if (names.includes(before)) model.value = before;
    model.disabled = names.length === 0;
    setText(note, models !== null && names.length === 0 ? 'No model is offered in this protocol.' : '');
    onChange();
  };
  const changeModel = (): void => {
    chosenModel.set(make.chosen, model.value);
    onChange();
  };

  const element = h(
    'div',
    { class: 'settings' },
    make.element,
    h('div', { class: 'pair wide' }, field('Protocol', protocol), field('Model', model)),
    note,
    ...Object.values(parts).map((part) => part.element),
  );
  changeKind();
  return {
    element,
    get kind() {
      return make.chosen;
    },
    read() {
      const settings = { model: model.value, ...parts[make.chosen].read() };
      // The options of the protocol are those of the kind, and the settings are of its part.
      return { kind: make.chosen, protocol: protocol.value, settings } as Choice;
    },
    problem: () => (model.value === '' ? 'There is no model to ask.' : parts[make.chosen].problem()),
    showModels(offered) {
      models = offered;
      changeProtocol();
    },
  };
}
