import type { RequestRules, TargetOptions } from '../codec.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest, TextProtocolName } from '../request.js';
import { type SearchSetting, searchSettings, type WebSearch } from '../web-search.js';
import type { FitContext, Fitted } from './fitted.js';

type Names = Partial<Readonly<Record<SearchSetting | 'forced', string>>>;

/** What each protocol calls the settings of a search. */
const names: Readonly<Record<TextProtocolName, Names>> = {
  chat: {
    location: 'web_search_options.user_location',
    contextSize: 'web_search_options.search_context_size',
  },
  responses: {
    forced: 'tool_choice',
    allowedDomains: 'filters.allowed_domains',
    blockedDomains: 'filters.blocked_domains',
    location: 'user_location',
    contextSize: 'search_context_size',
    live: 'external_web_access',
  },
  messages: {
    forced: 'tool_choice',
    allowedDomains: 'allowed_domains',
    blockedDomains: 'blocked_domains',
    location: 'user_location',
    maxUses: 'max_uses',
  },
  generateContent: { blockedDomains: 'googleSearch.excludeDomains' },
};

/**
 * Decides whether the target is asked to search the web, and tells what of the search it cannot be told. A search that
 * it is not asked for is one of the tools that only another vendor can run; so is one of pages to which the target cannot
 * be held, since it would read others.
 */
export function fitWebSearch(
  request: ConversationRequest,
  { rules: { search: rules }, options, leftOut }: FitContext,
): Fitted | null {
  const { search, tools, toolChoice, from } = request;
  if (search === undefined) return null;
  // Where no choice can be said of it, a client that wants no tool is served by leaving it out.
  const isUnwanted = toolChoice?.mode === 'none' && rules.choice !== 'any';
  const isAskedFor = !isUnwanted && isAsked(request, rules, options);
  const unsayable = isAskedFor ? unsayableOf(search, rules) : [];
  if (!isAskedFor || unsayable.length > 0) {
    for (const setting of unsayable) tell(from, setting, leftOut);
    if (search.forced) tell(from, 'forced', leftOut);
    const { type, at } = search;
    const hostedTools = isUnwanted ? request.hostedTools : [...request.hostedTools, { type, at }];
    return { request: { ...request, search: undefined, hostedTools }, restorer: null };
  }
  for (const setting of searchSettings)
    if (!rules.says.includes(setting) && isSet(search, setting)) tell(from, setting, leftOut);
  // A choice of calls means nothing beside a search that cannot be chosen.
  const isLost = rules.choice === 'none' && (search.forced || (tools.length === 0 && toolChoice !== null));
  if (isLost && (search.forced || toolChoice?.mode === 'required')) leftOut.add('tool_choice');
  if (!isLost) return null;
  return {
    request: { ...request, toolChoice: null, search: { ...search, forced: false } },
    restorer: null,
  };
}

function isAsked(
  { tools, format }: ConversationRequest,
  { asked, name }: RequestRules['search'],
  { search: wish }: TargetOptions,
): boolean {
  if (wish === false || tools.some((tool) => tool.name === name)) return false;
  if (wish === true || asked === 'always') return true;
  return asked === 'alone' && tools.length === 0 && format === null;
}

const restrictions: readonly SearchSetting[] = ['allowedDomains', 'blockedDomains'];

/** What keeps a search from pages and cannot be said. No protocol says both, though both may count. */
function unsayableOf(search: WebSearch, { says }: RequestRules['search']): readonly SearchSetting[] {
  const set = restrictions.filter((setting) => isSet(search, setting));
  return set.filter((setting) => !says.includes(setting) || (set.length > 1 && setting === 'blockedDomains'));
}

function isSet(search: WebSearch, setting: SearchSetting): boolean {
  const value = search[setting];
  if (setting === 'live') return value === false;
  return Array.isArray(value) ? value.length > 0 : value !== null;
}

function tell(from: TextProtocolName, setting: SearchSetting | 'forced', leftOut: LeftOut): void {
  const name = names[from][setting];
  if (name !== undefined) leftOut.add(name);
}
