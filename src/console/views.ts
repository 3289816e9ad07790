import type { ComponentType } from 'preact';
import { ConfigView } from './config/view.js';
import { KeysView } from './keys/view.js';
import { OverviewView } from './overview/view.js';
import { PlaygroundView } from './playground/view.js';
import { RequestsView } from './requests/view.js';
import { TargetsView } from './targets/view.js';
import { TasksView } from './tasks/view.js';
import { UsageView } from './usage/view.js';

/** A view of the page, mounted only while it is shown. */
interface ViewEntry {
  /** The part of the address after `#`. */
  readonly name: string;
  readonly title: string;
  readonly View: ComponentType;
}

/** The views in the order of the navigation; the first is the default. */
export const views: readonly [ViewEntry, ...ViewEntry[]] = [
  { name: 'overview', title: 'Overview', View: OverviewView },
  { name: 'targets', title: 'Targets', View: TargetsView },
  { name: 'requests', title: 'Requests', View: RequestsView },
  { name: 'keys', title: 'Keys', View: KeysView },
  { name: 'usage', title: 'Usage', View: UsageView },
  { name: 'tasks', title: 'Video tasks', View: TasksView },
  { name: 'config', title: 'Config', View: ConfigView },
  { name: 'playground', title: 'Playground', View: PlaygroundView },
];
