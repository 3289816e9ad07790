import type { LeftOut } from '../left-out.js';
import type { Cacheable, CacheMark, ConversationRequest, Tool, Turn, UserPart } from '../request.js';
import type { FitContext, Fitted } from './fitted.js';

/** Where a mark can be: a tool, an instruction among the turns, a part, or a text in `system` by its index. */
type Place = Cacheable | number;
type Marks = Map<Place, CacheMark>;
const noMarks: ReadonlyMap<Place, CacheMark> = new Map();

/**
 * Marks what an upstream should cache of a prompt, if it only caches what is marked: up to the end of the tools, of the
 * system prompt, and of the last two messages of the user. The earlier one is where the previous request ended. The
 * client's own marks count and are not moved.
 * Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 */
export function fitCacheBreakpoints(
  request: ConversationRequest,
  { rules: { cacheBreakpoints: most, partBreakpoints }, options, leftOut }: FitContext,
): Fitted | null {
  const { promptCaching, cacheBreakpoints } = options;
  const own = isMarked(request) ? ownMarks(request) : noMarks;
  if (partBreakpoints && cacheBreakpoints) {
    nameUnwritten(request, leftOut);
    return null;
  }
  const lost = [...own.values()].slice(0, Math.max(0, own.size - most));
  for (const { name = 'cache_control' } of lost) leftOut.add(name);
  const hasOpenAi = [...own.values()].some(isOpenAi);
  if (most === 0 || (!promptCaching && own.size <= most && !hasOpenAi)) return null;
  // The last marks cover the longest prefixes.
  const marks: Marks = new Map([...own].slice(-most));
  const kept = new Set(marks.keys());
  if (promptCaching) addMarks(request, marks, most);
  if (promptCaching || hasOpenAi) lengthen(request, marks, kept);
  return { request: withMarks(request, marks), restorer: null };
}

/** Lists every place of a prompt, in the prompt's order. */
function placesOf({ tools, system, turns }: ConversationRequest): Place[] {
  const places: Place[] = [...tools, ...system.keys()];
  for (const turn of turns) {
    if (turn.role === 'system') places.push(turn);
    else for (const part of turn.parts) if (part.kind !== 'reasoning') places.push(part);
  }
  return places;
}

function isMarked({ tools, systemCache, turns }: ConversationRequest): boolean {
  if (systemCache?.some((mark) => mark !== null) === true || tools.some(bearsMark)) return true;
  return turns.some((turn) =>
    turn.role === 'system'
      ? bearsMark(turn)
      : turn.parts.some((part) => part.kind !== 'reasoning' && bearsMark(part)),
  );
}

function bearsMark({ cache }: Cacheable): boolean {
  return cache !== undefined;
}

function ownMarks(request: ConversationRequest): Marks {
  const marks: Marks = new Map();
  for (const place of placesOf(request)) {
    const mark = typeof place === 'number' ? request.systemCache?.[place] : place.cache;
    if (mark) marks.set(place, mark);
  }
  return marks;
}

/** OpenAI's models take marks neither on tools nor on what the assistant has said. */
function nameUnwritten({ tools, turns }: ConversationRequest, leftOut: LeftOut): void {
  const places: Cacheable[] = [...tools];
  for (const turn of turns)
    if (turn.role === 'assistant')
      for (const part of turn.parts) if (part.kind !== 'reasoning') places.push(part);
  for (const { cache } of places) if (cache) leftOut.add(cache.name ?? 'cache_control');
}

/** OpenAI's marks say how long a prompt is kept at least, and may come in any order. */
function isOpenAi({ name }: CacheMark): boolean {
  return name === 'prompt_cache_breakpoint';
}

/** @param marks the client's marks; the others are added to them */
function addMarks(request: ConversationRequest, marks: Marks, most: number): void {
  const [last, before] = lastOfUser(request.turns);
  const text = request.system.findLastIndex((each) => each.trim() !== '');
  // In descending value, since the client's marks may leave room for few.
  for (const place of [last, text === -1 ? undefined : text, lastTool(request), before])
    if (place !== undefined && marks.size < most && !marks.has(place)) marks.set(place, { ttl: null });
}

/**
 * Lengthens marks: the upstream refuses a mark with a longer lifetime after one with a shorter.
 * @param own places of the client's marks, of which only OpenAI's are changed
 */
function lengthen(request: ConversationRequest, marks: Marks, own: ReadonlySet<Place>): void {
  if (![...marks.values()].some(({ ttl }) => ttl === '1h')) return;
  let isLong = false;
  for (const place of placesOf(request).reverse()) {
    const mark = marks.get(place);
    if (mark?.ttl === '1h') isLong = true;
    else if (mark !== undefined && isLong && (!own.has(place) || isOpenAi(mark)))
      marks.set(place, { ...mark, ttl: '1h' });
  }
}

function lastTool({ tools, toolChoice }: ConversationRequest): Tool | undefined {
  // A choice of some tools may leave out the others.
  const chosen = toolChoice?.mode === 'allowed' ? new Set(toolChoice.names) : null;
  return tools.findLast(({ name }) => chosen === null || chosen.has(name)) ?? tools.at(-1);
}

/**
 * Returns the ends of the last two messages of the user. Turns without one of the assistant between them are one
 * message.
 */
function lastOfUser(turns: readonly Turn[]): Cacheable[] {
  const ends: Cacheable[] = [];
  let end: Cacheable | undefined;
  for (let index = turns.length - 1; index >= 0 && ends.length < 2; index--) {
    const turn = turns[index] as Turn;
    if (turn.role !== 'assistant') end = laterOf(end, turn);
    if (end !== undefined && (turn.role === 'assistant' || index === 0)) {
      ends.push(end);
      end = undefined;
    }
  }
  return ends;
}

/**
 * Tool results precede everything else in a message.
 * @param end what was found in the turns after this one
 */
function laterOf(
  end: Cacheable | undefined,
  turn: Exclude<Turn, { role: 'assistant' }>,
): Cacheable | undefined {
  if (end !== undefined && !isResult(end)) return end;
  if (turn.role === 'system') return turn.text.trim() === '' ? end : turn;
  const said = turn.parts.findLast(
    (part) => part.kind !== 'toolResult' && (part.kind !== 'text' || part.text.trim() !== ''),
  );
  return said ?? end ?? turn.parts.findLast(isResult);
}

function isResult(place: Cacheable | UserPart): boolean {
  return 'kind' in place && place.kind === 'toolResult';
}

function withMarks(request: ConversationRequest, marks: Marks): ConversationRequest {
  return {
    ...request,
    tools: request.tools.map((tool) => withMark(tool, marks)),
    systemCache: request.system.map((_text, index) => marks.get(index) ?? null),
    turns: request.turns.map((turn) => marked(turn, marks)),
  };
}

function marked(turn: Turn, marks: Marks): Turn {
  if (turn.role === 'system') return withMark(turn, marks);
  if (turn.role === 'user')
    return turn.parts.every((part) => part.cache === marks.get(part))
      ? turn
      : { ...turn, parts: turn.parts.map((part) => withMark(part, marks)) };
  const parts = turn.parts.map((part) => (part.kind === 'reasoning' ? part : withMark(part, marks)));
  return parts.every((part, index) => part === turn.parts[index]) ? turn : { ...turn, parts };
}

function withMark<Of extends Cacheable>(place: Of, marks: Marks): Of {
  const cache = marks.get(place);
  // Spreading with a member that was absent before takes V8 four times as long.
  return place.cache === cache ? place : Object.assign({}, place, { cache });
}
