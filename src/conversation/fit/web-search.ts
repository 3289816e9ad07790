import type { RequestRules, TargetOptions } from '../codec.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest, TextProtocolName } from '../request.js';
import { type SearchSetting, searchSettings, type WebSearch } from '../web-search.js';
import type { FitContext, Fitted } from './fitted.js';

type Names = Partial<Readonly<Record<SearchSetting | 'forced', string>>>;

/** Names of a search's settings in each protocol. */
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
 * Decides whether the target is told to search the web, and records what of the search it cannot be told. A search that
 * it is not told about is treated as a tool that only another vendor can run. So is a search of certain pages if the
 * target cannot be restricted to these, since it would read others.
 */
export function fitWebSearch(
  request: ConversationRequest,
  { rules: { search: rules }, options, leftOut }: FitContext,
): Fitted | null {
  const { search, tools, toolChoice, from } = request;
  if (search === undefined) return null;
  // If the protocol cannot forbid the search, it is left out for a client that wants no tool.
  const isUnwanted = toolChoice?.mode === 'none' && rules.choice !== 'any';
  const isAskedFor = !isUnwanted && isAsked(request, rules, options);
  const unsupported = isAskedFor ? unsupportedOf(search, rules) : [];
  if (!isAskedFor || unsupported.length > 0) {
    for (const setting of unsupported) tell(from, setting, leftOut);
    if (search.forced) tell(from, 'forced', leftOut);
    const { type, at } = search;
    const hostedTools = isUnwanted ? request.hostedTools : [...request.hostedTools, { type, at }];
    return { request: { ...request, search: undefined, hostedTools }, restorer: null };
  }
  for (const setting of searchSettings)
    if (!rules.says.includes(setting) && isSet(search, setting)) tell(from, setting, leftOut);
  // A choice of tools has no effect if the only tool is a search that cannot be chosen.
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

/**
 * Returns the restrictions of a search to certain pages that the target cannot be told. No protocol has both of them,
 * though both may be set.
 */
function unsupportedOf(search: WebSearch, { says }: RequestRules['search']): readonly SearchSetting[] {
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
