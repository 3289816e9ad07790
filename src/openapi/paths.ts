import type { Route } from '../routes.js';

/** A route with its place in the document. */
export interface PlacedRoute {
  readonly route: Route;
  /** Path with `{name}` for each parameter. */
  readonly template: string;
  /** Names of the parameters, in order. */
  readonly parameters: readonly Wildcard[];
}

export interface Wildcard {
  readonly name: string;
  /** The value may hold slashes. */
  readonly spansSlashes: boolean;
}

const wildcard = /\{([A-Za-z][A-Za-z0-9_]*)(\.\.\.)?\}(:?)/g;

/**
 * Gives every route its place. Templates that differ in the names of their parameters alone are one to OpenAPI: the
 * names of the first then hold for all.
 * @throws {Error} for two routes of one method that OpenAPI could not tell apart
 */
export function placeRoutes(routes: readonly Route[]): readonly PlacedRoute[] {
  const templates = new Map<string, string>();
  const taken = new Set<string>();
  return routes.map((route) => {
    const shape = route.path.replace(wildcard, '{}$3');
    const template = templates.get(shape) ?? route.path.replace(wildcard, '{$1}$3');
    templates.set(shape, template);
    const place = `${route.method} ${shape}`;
    if (taken.has(place))
      throw new Error(`OpenAPI cannot tell ${route.method} ${route.path} from another route.`);
    taken.add(place);
    return { route, template, parameters: wildcardsOf(template, route.path) };
  });
}

/** @param path of the route, whose wildcards have the places of those of the template, perhaps under other names */
function wildcardsOf(template: string, path: string): readonly Wildcard[] {
  const own = [...path.matchAll(wildcard)];
  return [...template.matchAll(wildcard)].map(([, name = ''], index) => {
    const [, , dots, action] = own[index] ?? [];
    return { name, spansSlashes: dots !== undefined || action === ':' };
  });
}
