import { ApiError, askJson } from '../api.js';
import { openFormDialog } from '../dialog.js';
import { fill, h, setText } from '../dom.js';
import type { View } from '../view.js';
import { messageOf, plural } from '../words.js';
import { createSectionView, type SectionView } from './config/section.js';
import { problemOf, sectionsOf } from './config/text.js';

/** What `GET /config` answers. */
interface RunningConfig {
  /** The file; null for the demo, which has none. */
  readonly path: string | null;
  readonly generation: number;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Sections that are open at first: what a gateway is mostly about. */
const firstOpen: readonly string[] = ['upstreams', 'models'];

const noFile = 'The demo has a config of its own and no file.';

/** Config: what is in force, the check of its file, and its reload. */
export function createConfigView(): View {
  let running: RunningConfig | null = null;
  let sections: readonly SectionView[] = [];
  let isLoading = false;

  const path = h('code', { class: 'config-path' });
  const generation = h('span', { class: 'badge' });
  const outcome = h('div', { class: 'config-outcome', hidden: true });
  const said = h('p', { class: 'hint', attributes: { role: 'status' } });
  const list = h('div', { class: 'config-sections' });
  const search = h('input', {
    type: 'search',
    placeholder: 'A name or a value',
    autocomplete: 'off',
    spellcheck: false,
    on: { input: () => find() },
  });
  const button = (title: string, style: string, run: () => void): HTMLButtonElement =>
    h('button', { type: 'button', class: `button ${style}`, on: { click: run } }, title);
  const check = button('Check file', '', () => void checkFile());
  const reload = button('Reload', 'primary', () => askReload());

  const tellGood = (message: string): void => {
    outcome.hidden = false;
    outcome.dataset.tone = 'good';
    fill(outcome, [h('p', { attributes: { role: 'status' } }, message)]);
  };
  const tellBad = (message: string, problems: readonly string[] = []): void => {
    outcome.hidden = false;
    outcome.dataset.tone = 'bad';
    const items = problems.map((text) => {
      const { path, message } = problemOf(text);
      return path === '' ? h('li', {}, message) : h('li', {}, h('code', {}, path), `: ${message}`);
    });
    fill(outcome, [
      h(
        'div',
        { attributes: { role: 'alert' } },
        h('p', {}, message),
        items.length === 0 ? null : h('ul', {}, ...items),
      ),
    ]);
  };

  const find = (): void => {
    const wanted = search.value.trim();
    const found = sections.reduce((sum, section) => sum + section.search(wanted), 0);
    setText(said, wanted === '' ? '' : found === 0 ? 'Nothing found.' : `${plural(found, 'line')} found`);
  };

  const isDemo = (): boolean => running?.path === null;
  const load = async (): Promise<void> => {
    if (isLoading) return;
    isLoading = true;
    try {
      const next = await askJson<RunningConfig>('/config');
      const isSame = JSON.stringify(next) === JSON.stringify(running);
      running = next;
      if (isSame) return;
      setText(path, next.path ?? 'the demo: there is no file');
      setText(generation, `generation ${next.generation}`);
      generation.dataset.value = `${next.generation}`;
      const open = new Set(
        sections.length === 0
          ? firstOpen
          : sections.flatMap(({ element }) => (element.open ? [element.dataset.section ?? ''] : [])),
      );
      sections = sectionsOf(next.config).map((section) => createSectionView(section, open.has(section.name)));
      fill(
        list,
        sections.map(({ element }) => element),
      );
      find();
    } catch (error) {
      tellBad(messageOf(error));
    } finally {
      isLoading = false;
    }
  };

  const checkFile = async (): Promise<void> => {
    check.disabled = true;
    try {
      const answer = await askJson<{ ok: boolean; problems?: readonly string[] }>('/config/check', {
        method: 'POST',
      });
      if (answer.ok) tellGood(isDemo() ? noFile : 'The file can be used. Nothing was put in force.');
      else tellBad('The file cannot be used:', answer.problems);
    } catch (error) {
      tellBad(messageOf(error), problemsIn(error));
    } finally {
      check.disabled = false;
    }
  };

  const askReload = (): void => {
    openFormDialog(
      {
        title: 'Reload the config?',
        verb: 'Reload now',
        async submit() {
          try {
            await askJson('/reload', { method: 'POST' });
            tellGood(isDemo() ? `Reloaded. ${noFile}` : 'Reloaded: the file is in force.');
          } catch (error) {
            const problems = problemsIn(error);
            if (problems.length === 0) throw error;
            tellBad('The file cannot be used; the config stays what it was:', problems);
          }
          await load();
          return true;
        },
      },
      h(
        'p',
        {},
        'The file is read again and put in force. Calls under way keep the config that they began with.',
      ),
      h('p', { class: 'hint' }, 'A file with a mistake changes nothing.'),
    );
  };

  return {
    element: h(
      'section',
      { class: 'config' },
      h('div', { class: 'view-head' }, h('h2', {}, 'Config'), h('div', { class: 'row' }, check, reload)),
      outcome,
      h(
        'div',
        { class: 'panel' },
        h('div', { class: 'row' }, path, generation),
        h(
          'div',
          { class: 'row list-head' },
          h('label', { class: 'field' }, h('span', {}, 'Find'), search),
          said,
        ),
        list,
      ),
    ),
    show: () => void load(),
    onState(state) {
      if (running !== null && state.gateway.configGeneration > running.generation) void load();
    },
  };
}

/** The problems of a refused reload. */
function problemsIn(error: unknown): readonly string[] {
  if (!(error instanceof ApiError)) return [];
  const { problems } = (error.body ?? {}) as { problems?: unknown };
  return Array.isArray(problems) ? problems.map((each) => `${each}`) : [];
}
