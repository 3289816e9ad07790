import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { LiveState } from '../metrics/live-state.js';
import { mayWrite } from './api.js';
import { span, whole } from './format.js';
import { useSession } from './session.js';
import { chooseTheme, savedTheme, type Theme } from './theme.js';
import { views } from './views.js';

/** The frame of the page, with the view that the address names. */
export function Shell({ onSignOut }: { readonly onSignOut: () => void }) {
  const main = useRef<HTMLElement>(null);
  const nav = useRef<HTMLElement>(null);
  const name = useSignal(location.hash.slice(1));
  const { state } = useSession();
  const notReady = state.value?.gateway.notReady ?? null;
  const shown = views.find((each) => each.name === name.value) ?? views[0];
  useEffect(() => {
    const follow = (): void => {
      name.value = location.hash.slice(1);
    };
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, [name]);
  useLayoutEffect(() => {
    document.title = `${shown.title} · Gateway`;
    const link = nav.current?.querySelector('[aria-current]');
    link?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    scrollTo(0, 0);
  }, [shown]);
  return (
    <div class="shell">
      {/* Not a jump to #main: what is after # names the part. */}
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header class="bar">
        <div class="brand">
          <h1>Gateway</h1>
          <Connection />
        </div>
        <nav ref={nav} aria-label="Parts">
          {views.map((each) => (
            <a key={each.name} href={`#${each.name}`} aria-current={each === shown ? 'page' : undefined}>
              {each.title}
            </a>
          ))}
        </nav>
        <Facts state={state.value} />
        <div class="tools">
          <span class="badge" data-tone="idle" hidden={mayWrite.value}>
            Read only
          </span>
          <ThemeChoice />
          <a href="/console/help/index.html" target="_blank" rel="noopener">
            Help
          </a>
          <button type="button" class="button quiet" onClick={onSignOut}>
            Sign out
          </button>
        </div>
      </header>
      <main ref={main} id="main" class="content" tabIndex={-1}>
        <p class="not-ready" role="status" hidden={notReady === null}>
          {notReady === null ? '' : `Not ready: ${notReady}`}
        </p>
        <shown.View key={shown.name} />
      </main>
    </div>
  );
}

function Connection() {
  const trouble = useSession().trouble.value;
  const tone = trouble === undefined ? 'idle' : trouble === null ? 'good' : 'bad';
  const words = { idle: 'Connecting …', good: 'Live', bad: 'Not live' }[tone];
  return (
    <div class="connection" role="status">
      <span class="badge" data-tone={tone}>
        {words}
      </span>
      <span class="hint">{trouble}</span>
    </div>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      {children}
    </div>
  );
}

/** The gateway's version, workers and uptime. The uptime is by the gateway's clock, like its start. */
function Facts({ state }: { readonly state: LiveState | null }) {
  const gateway = state?.gateway;
  const counts = gateway?.workers;
  const isShort = counts !== undefined && counts.serving < counts.wanted;
  return (
    <dl class="facts">
      <Fact name="Version">
        <dd title={gateway && `Node ${gateway.node}`}>{gateway?.version}</dd>
      </Fact>
      <Fact name="Up">
        <dd>{state && span(state.at - state.gateway.startedAt)}</dd>
      </Fact>
      <Fact name="Workers">
        <dd data-tone={isShort ? 'warn' : ''}>{counts && `${counts.serving} of ${counts.wanted}`}</dd>
      </Fact>
      {counts !== undefined && counts.restarts > 0 && (
        <Fact name="Restarts">
          <dd>{whole(counts.restarts)}</dd>
        </Fact>
      )}
      <Fact name="Config">
        <dd>{gateway && `generation ${gateway.configGeneration}`}</dd>
      </Fact>
    </dl>
  );
}

function ThemeChoice() {
  return (
    <select
      class="theme"
      aria-label="Theme"
      onChange={({ currentTarget }) => chooseTheme(currentTarget.value as Theme)}
    >
      {(['auto', 'light', 'dark'] as const).map((theme) => (
        <option key={theme} value={theme} selected={theme === savedTheme()}>
          {`${theme.charAt(0).toUpperCase()}${theme.slice(1)}`}
        </option>
      ))}
    </select>
  );
}
