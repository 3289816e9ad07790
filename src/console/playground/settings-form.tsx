import { Choice } from '../choice.js';
import { into } from '../into.js';
import { type Kind, protocolsOf } from './choice.js';
import { Field, NumberField, Select } from './fields.js';
import {
  type ImageSettings,
  imageRatios,
  imageResolutions,
  imageSizes,
  speechFormats,
} from './media-request.js';
import { extraOf, type Settings, voices } from './settings.js';
import { videoSizes } from './video-request.js';

const kinds: readonly (readonly [Kind, string])[] = [
  ['chat', 'Chat'],
  ['image', 'Image'],
  ['speech', 'Speech'],
  ['video', 'Video'],
];

const forms = { chat: ChatForm, image: ImageForm, speech: SpeechForm, video: VideoForm };

interface FormProps {
  readonly settings: Settings;
}

/** The form of the kind of output, its protocol and model, and its settings. */
export function SettingsForm({ settings }: FormProps) {
  const { kind, protocols, chosenModels, protocol, offered, model, models } = settings;
  const Form = forms[kind.value];
  return (
    <div class="settings">
      <Choice label="Make" names={kinds} chosen={kind} />
      <div class="pair wide">
        <Select
          name="Protocol"
          options={protocolsOf[kind.value].map(({ name, title }) => [name, title])}
          chosen={protocol.value.name}
          onChange={(name) => {
            protocols.value = { ...protocols.value, [kind.value]: name };
          }}
        />
        <Select
          name="Model"
          options={offered.value.map(same)}
          chosen={model.value}
          onChange={(name) => {
            chosenModels.value = { ...chosenModels.value, [kind.value]: name };
          }}
        />
      </div>
      <p class="problem" role="status">
        {models.value !== null && model.value === '' && 'No model is offered in this protocol.'}
      </p>
      <Form settings={settings} />
    </div>
  );
}

function ChatForm({ settings: { chat } }: FormProps) {
  const isExtraWrong = extraOf(chat) === null;
  return (
    <div class="settings">
      <Field name="System">
        <textarea rows={3} placeholder="None" value={chat.system} onInput={into(chat.system)} />
      </Field>
      <div class="pair">
        <NumberField name="Max tokens" typed={chat.maxTokens} min={1} placeholder="Unset" />
        <NumberField
          name="Temperature"
          typed={chat.temperature}
          min={0}
          max={2}
          step={0.1}
          placeholder="Unset"
        />
        <label class="check">
          <input
            type="checkbox"
            checked={chat.stream}
            onChange={({ currentTarget }) => {
              chat.stream.value = currentTarget.checked;
            }}
          />
          Stream
        </label>
      </div>
      <details class="more">
        <summary>More fields</summary>
        <Field name="More fields (JSON)">
          <textarea
            rows={4}
            class="json"
            spellcheck={false}
            placeholder={'{"tools": […], "reasoning_effort": "low"}'}
            aria-invalid={isExtraWrong}
            value={chat.extra}
            onInput={into(chat.extra)}
          />
        </Field>
        <p class="problem" role="alert">
          {isExtraWrong && 'This is no JSON object.'}
        </p>
        <p class="hint">Laid over the body: tools, reasoning and all else that the protocol knows.</p>
      </details>
    </div>
  );
}

function ImageForm({ settings: { image, protocol } }: FormProps) {
  const change = (changed: Partial<ImageSettings>): void => {
    image.value = { ...image.value, ...changed };
  };
  const { size, result, ratio, resolution } = image.value;
  if (protocol.value.name === 'generateContent') {
    return (
      <div class="settings pair">
        <Select
          name="Ratio"
          options={[unset, ...imageRatios.map(same)]}
          chosen={ratio}
          onChange={(ratio) => change({ ratio })}
        />
        <Select
          name="Resolution"
          options={[unset, ...imageResolutions.map(same)]}
          chosen={resolution}
          onChange={(resolution) => change({ resolution })}
        />
      </div>
    );
  }
  return (
    <div class="settings pair">
      <Select
        name="Size"
        options={[unset, ...imageSizes.map(same)]}
        chosen={size}
        onChange={(size) => change({ size })}
      />
      <Select
        name="Answer with"
        options={[['b64_json', 'Base64'], ['url', 'Address'], unset]}
        chosen={result}
        onChange={(result) => change({ result: result as ImageSettings['result'] })}
      />
    </div>
  );
}

function SpeechForm({ settings: { speech } }: FormProps) {
  return (
    <div class="settings pair">
      <Field name="Voice">
        <input type="text" list="playground-voices" value={speech.voice} onInput={into(speech.voice)} />
      </Field>
      <datalist id="playground-voices">
        {voices.map((voice) => (
          <option key={voice} value={voice} />
        ))}
      </datalist>
      <Select
        name="Format"
        options={speechFormats.map((name) => [name, name === 'pcm' ? 'pcm (to download)' : name])}
        chosen={speech.format.value}
        onChange={(format) => {
          speech.format.value = format;
        }}
      />
      <NumberField name="Speed" typed={speech.speed} min={0.25} max={4} step={0.05} placeholder="1" />
    </div>
  );
}

function VideoForm({ settings: { video } }: FormProps) {
  return (
    <div class="settings pair">
      <Select
        name="Size"
        options={Object.keys(videoSizes).map(same)}
        chosen={video.size.value}
        onChange={(size) => {
          video.size.value = size;
        }}
      />
      <NumberField name="Seconds" typed={video.seconds} min={1} max={60} />
    </div>
  );
}

const unset = ['', 'Unset'] as const;

function same(name: string): readonly [string, string] {
  return [name, name];
}
