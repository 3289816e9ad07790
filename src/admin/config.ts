import type { ResolvedConfig } from '../config/resolve.js';
import { json } from './answer.js';
import { configView } from './config-view.js';
import type { AdminRoute } from './routes.js';

/** The config, as operators see and try it. */
export interface ConfigDesk {
  /** Absolute path of the file; null for the demo, which has none. */
  readonly path: string | null;
  /** How many configs have been in force. */
  generation(): number;
  running(): ResolvedConfig;
  /** Reads the file as a reload does. @returns what is wrong with it, with paths in the file */
  check(): Promise<readonly string[]>;
}

/** `GET /config`, the running config without its secrets, and `POST /config/check`, which puts nothing in force. */
export function configRoutes(desk: ConfigDesk): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/config',
      needsToken: true,
      handle: () =>
        json({ path: desk.path, generation: desk.generation(), config: configView(desk.running()) }),
    },
    {
      method: 'POST',
      path: '/config/check',
      needsToken: true,
      handle: async () => {
        const problems = await desk.check();
        return json(problems.length === 0 ? { ok: true } : { ok: false, problems });
      },
    },
  ];
}
