import type { HistoryView, LiveState } from '../live-state.js';
import { forgetToken, savedToken, signedOut } from './api.js';
import { followLive } from './live.js';
import { createShell } from './shell.js';
import { createSignIn } from './sign-in.js';
import { startTheme } from './theme.js';
import type { View, ViewEntry } from './view.js';
import { createConfigView } from './views/config.js';
import { createKeysView } from './views/keys.js';
import { createOverviewView } from './views/overview.js';
import { createPlaygroundView } from './views/playground.js';
import { createRequestsView } from './views/requests.js';
import { createTargetsView } from './views/targets.js';
import { createTasksView } from './views/tasks.js';
import { createUsageView } from './views/usage.js';

const entries: readonly ViewEntry[] = [
  { name: 'overview', title: 'Overview', create: createOverviewView },
  { name: 'targets', title: 'Targets', create: createTargetsView },
  { name: 'requests', title: 'Requests', create: createRequestsView },
  { name: 'keys', title: 'Keys', create: createKeysView },
  { name: 'usage', title: 'Usage', create: createUsageView },
  { name: 'tasks', title: 'Video tasks', create: createTasksView },
  { name: 'config', title: 'Config', create: createConfigView },
  { name: 'playground', title: 'Playground', create: createPlaygroundView },
];

/** Shows the console from the sign-in to the sign-out. */
function open(): void {
  const views = new Map<string, View>();
  let shown: View | null = null;
  let state: LiveState | null = null;
  let points: readonly HistoryView[] = [];

  const shell = createShell(entries, () => leave());
  const show = (): void => {
    const name = location.hash.slice(1);
    const entry = entries.find((each) => each.name === name) ?? (entries[0] as ViewEntry);
    let view = views.get(entry.name);
    if (view === undefined) {
      view = entry.create();
      views.set(entry.name, view);
    }
    if (view === shown) return;
    shown?.hide?.();
    shown = view;
    shell.show(entry, view);
    view.show?.();
    view.onHistory?.(points);
    if (state !== null) view.onState?.(state);
  };
  const stop = followLive({
    onState(next) {
      state = next;
      shell.onState(next);
      shown?.onState?.(next);
    },
    onHistory(next) {
      points = next;
      shown?.onHistory?.(next);
    },
    onConnection: (reason) => shell.onConnection(reason),
  });
  const leave = (): void => {
    stop();
    shown?.hide?.();
    removeEventListener('hashchange', show);
    signedOut.removeEventListener('signed-out', leave);
    forgetToken();
    signIn();
  };

  addEventListener('hashchange', show);
  signedOut.addEventListener('signed-out', leave);
  document.body.replaceChildren(shell.element);
  show();
}

function signIn(): void {
  const form = createSignIn(open);
  document.body.replaceChildren(form.element);
  form.focus();
}

startTheme();
if (savedToken() === null) signIn();
else open();
