import { type Signal, signal, useComputed, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiError, askJson, mayWrite } from '../api.js';
import { FormDialog } from '../dialog.js';
import { into } from '../into.js';
import { useKept, useSession } from '../session.js';
import { messageOf, plural } from '../words.js';
import { ConfigSection, foundIn } from './section.js';
import { problemOf, sectionsOf } from './text.js';

/** The answer of `GET /config`. */
interface RunningConfig {
  /** The file; null for the demo, which has none. */
  readonly path: string | null;
  readonly generation: number;
  readonly config: Readonly<Record<string, unknown>>;
}

/** The outcome of the last action. */
interface ConfigOutcome {
  readonly isGood: boolean;
  readonly message: string;
  readonly problems: readonly string[];
}

interface ConfigState {
  readonly running: Signal<RunningConfig | null>;
  readonly outcome: Signal<ConfigOutcome | null>;
  readonly wanted: Signal<string>;
  readonly open: Signal<ReadonlySet<string>>;
}

/** Sections that are open at first: the most important ones. */
const firstOpen: readonly string[] = ['upstreams', 'models'];

const noFile = 'The demo has a config of its own and no file.';

/** The config in force, the check of its file, and its reload. */
export function ConfigView() {
  const kept = useKept<ConfigState>('config', () => ({
    running: signal<RunningConfig | null>(null),
    outcome: signal<ConfigOutcome | null>(null),
    wanted: signal(''),
    open: signal<ReadonlySet<string>>(new Set(firstOpen)),
  }));
  const isChecking = useSignal(false);
  const isAsking = useSignal(false);
  // Loads the config when the view is shown, and again when the live state reports a new generation.
  const generation = useSession().state.value?.gateway.configGeneration;
  useEffect(() => void load(kept), [kept, generation]);

  const running = kept.running.value;
  const check = async (): Promise<void> => {
    isChecking.value = true;
    await checkFile(kept);
    isChecking.value = false;
  };
  return (
    <section class="config">
      <div class="view-head">
        <h2>Config</h2>
        <div class="row">
          <button type="button" class="button" disabled={isChecking} onClick={check}>
            Check file
          </button>
          <button
            type="button"
            class="button primary"
            hidden={!mayWrite.value}
            onClick={() => {
              isAsking.value = true;
            }}
          >
            Reload
          </button>
        </div>
      </div>
      {kept.outcome.value !== null && <OutcomeBox {...kept.outcome.value} />}
      <div class="panel">
        <div class="row">
          <code class="config-path">{running && (running.path ?? 'the demo: there is no file')}</code>
          <span class="badge" data-value={running?.generation}>
            {running && `generation ${running.generation}`}
          </span>
        </div>
        <Sections kept={kept} />
      </div>
      {isAsking.value && (
        <FormDialog
          title="Reload the config?"
          verb="Reload now"
          submit={() => reload(kept)}
          onClosed={() => {
            isAsking.value = false;
          }}
        >
          <p>
            The file is read again and put in force. Calls under way keep the config that they began with.
          </p>
          <p class="hint">A file with a mistake changes nothing.</p>
        </FormDialog>
      )}
    </section>
  );
}

function OutcomeBox({ isGood, message, problems }: ConfigOutcome) {
  if (isGood) {
    return (
      <div class="config-outcome" data-tone="good">
        <p role="status">{message}</p>
      </div>
    );
  }
  return (
    <div class="config-outcome" data-tone="bad">
      <div role="alert">
        <p>{message}</p>
        {problems.length > 0 && (
          <ul>
            {problems.map(problemOf).map(({ path, message }) => (
              <li key={`${path} ${message}`}>
                {path !== '' && <code>{path}</code>}
                {path === '' ? message : `: ${message}`}
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

/** The sections of the config, with a search in them. */
function Sections({ kept: { running, wanted: typed, open } }: { readonly kept: ConfigState }) {
  const sections = useComputed(() => sectionsOf(running.value?.config ?? {})).value;
  const wanted = typed.value.trim();
  const found = sections.reduce((sum, section) => sum + foundIn(section, wanted), 0);
  return (
    <>
      <div class="row list-head">
        <label class="field">
          <span>Find</span>
          <input
            type="search"
            placeholder="A name or a value"
            autocomplete="off"
            spellcheck={false}
            value={typed}
            onInput={into(typed)}
          />
        </label>
        <p class="hint" role="status">
          {wanted === '' ? '' : found === 0 ? 'Nothing found.' : `${plural(found, 'line')} found`}
        </p>
      </div>
      <div class="config-sections">
        {sections.map((section) => (
          <ConfigSection key={section.name} section={section} wanted={wanted} open={open} />
        ))}
      </div>
    </>
  );
}

async function load({ running, outcome }: ConfigState): Promise<void> {
  try {
    const next = await askJson<RunningConfig>('/config');
    // An unchanged config is not drawn again, so that a selection in it is kept.
    if (JSON.stringify(next) !== JSON.stringify(running.value)) running.value = next;
  } catch (error) {
    outcome.value = bad(messageOf(error), []);
  }
}

async function checkFile({ running, outcome }: ConfigState): Promise<void> {
  try {
    const answer = await askJson<{ ok: boolean; problems?: readonly string[] }>('/config/check', {
      method: 'POST',
    });
    const isDemo = running.value?.path === null;
    outcome.value = answer.ok
      ? good(isDemo ? noFile : 'The file can be used. Nothing was put in force.')
      : bad('The file cannot be used:', answer.problems ?? []);
  } catch (error) {
    outcome.value = bad(messageOf(error), problemsIn(error));
  }
}

/** @throws the error that the dialog shows */
async function reload(kept: ConfigState): Promise<boolean> {
  const { running, outcome } = kept;
  try {
    await askJson('/reload', { method: 'POST' });
    const isDemo = running.value?.path === null;
    outcome.value = good(isDemo ? `Reloaded. ${noFile}` : 'Reloaded: the file is in force.');
  } catch (error) {
    const problems = problemsIn(error);
    if (problems.length === 0) throw error;
    const isPartly = bodyIn(error).status === 'partly reloaded';
    outcome.value = bad(
      isPartly
        ? 'The file is in force, but not in every worker:'
        : 'The file cannot be used; the config stays what it was:',
      problems,
    );
  }
  await load(kept);
  return true;
}

function good(message: string): ConfigOutcome {
  return { isGood: true, message, problems: [] };
}

function bad(message: string, problems: readonly string[]): ConfigOutcome {
  return { isGood: false, message, problems };
}

/** The problems in the error of a reload. */
function problemsIn(error: unknown): readonly string[] {
  const { problems } = bodyIn(error);
  return Array.isArray(problems) ? problems.map((each) => `${each}`) : [];
}

function bodyIn(error: unknown): { readonly status?: unknown; readonly problems?: unknown } {
  return error instanceof ApiError ? (error.body ?? {}) : {};
}
