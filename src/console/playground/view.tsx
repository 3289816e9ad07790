import { computed, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { useKept, useSession } from '../session.js';
import { CodePane } from './code-pane.js';
import { Composer } from './composer.js';
import { EventsPane } from './events-pane.js';
import { ExchangeItem } from './exchange-item.js';
import { KeyField } from './key-field.js';
import { askedNow, clear, createPlayground, load, type Playground, send } from './playground.js';
import { SettingsForm } from './settings-form.js';
import { type Tab, Tabs } from './tabs.js';
import { TimingPane } from './timing-pane.js';

/** Shown in the code until the gateway's URL is known. */
const usualUrl = 'http://127.0.0.1:8080';
/** Screens with room for the settings beside the answers. */
const wideScreen = '(min-width: 64rem)';
/** Screens with room for two panels side by side. */
const widestScreen = '(min-width: 110rem)';

/** The playground: sends calls of any kind, and shows their results and equivalent code. */
export function PlaygroundView() {
  const { state } = useSession();
  const playground = useKept('playground', () =>
    createPlayground(computed(() => state.value?.gateway.url ?? '')),
  );
  const answers = useRef<HTMLDivElement>(null);
  const hasRoom = useMedia(widestScreen);
  const textarea = useRef<HTMLTextAreaElement>(null);
  useEffect(() => void load(playground), [playground]);
  const { settings, prompt, problem, running, tabs, language, baseUrl, exchanges, last } = playground;
  // Keeps the end of the answers visible.
  useLayoutEffect(() => {
    if (answers.current !== null) answers.current.scrollTop = answers.current.scrollHeight;
  }, [last.value]);

  const { record } = last.value;
  const panels: readonly Tab[] = [
    {
      title: 'Answer',
      panel: answers,
      stays: true,
      content: () => (
        <>
          <p class="empty" hidden={exchanges.value.length > 0}>
            Answers appear here.
          </p>
          <ol class="exchanges" aria-live="polite">
            {exchanges.value.map((exchange, index) => (
              <ExchangeItem key={index} exchange={exchange} />
            ))}
          </ol>
        </>
      ),
    },
    { title: 'Events', content: () => <EventsPane record={record} /> },
    { title: 'Timing', content: () => <TimingPane record={record} /> },
    {
      title: 'Code',
      content: () => (
        <CodePane asked={askedNow(playground)} baseUrl={baseUrl.value || usualUrl} language={language} />
      ),
    },
  ];
  return (
    <section class="playground">
      <h2>Playground</h2>
      <div class="bench">
        <Side playground={playground} />
        <div class="work panel">
          <Tabs label="Result" tabs={panels} chosen={tabs} hasRoom={hasRoom} />
          <p class="problem" role="alert">
            {problem}
          </p>
          <Composer
            kind={settings.kind.value}
            prompt={prompt}
            textarea={textarea}
            isRunning={running.value !== null}
            onSend={() => void send(playground)}
            onStop={() => running.value?.abort()}
            onClear={() => {
              clear(playground);
              textarea.current?.focus();
            }}
          />
        </div>
      </div>
    </section>
  );
}

/** The settings, collapsible if there is no room beside the answers. */
function Side({ playground: { settings, key } }: { readonly playground: Playground }) {
  const isWide = useMedia(wideScreen);
  const isOpen = useSignal(isWide);
  useEffect(() => {
    if (isWide) isOpen.value = true;
  }, [isWide, isOpen]);
  const chosen = [settings.protocol.value.title, settings.model.value].filter((each) => each !== '');
  return (
    <details
      class="side panel"
      open={isOpen}
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>{`Settings: ${chosen.join(', ')}`}</summary>
      <div class="settings">
        <SettingsForm settings={settings} />
        <KeyField apiKey={key} />
      </div>
    </details>
  );
}

/** Whether a media query matches. */
function useMedia(query: string): boolean {
  const holds = useSignal(matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const follow = (): void => {
      holds.value = media.matches;
    };
    media.addEventListener('change', follow);
    return () => media.removeEventListener('change', follow);
  }, [query, holds]);
  return holds.value;
}
