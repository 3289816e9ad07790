import type { Answer, StreamEvent } from '../answer.js';
import type { RequestRules, TargetOptions } from '../codec.js';
import type { ConversationRequest, HostedTool, ReasoningPart } from '../request.js';
import { isSetByClient, leaveOut, type Setting } from '../setting-names.js';
import { isFor, isOfVendor, signatureFor } from '../signature.js';
import { fitAnswerSchema, fitJsonWord, fitOutputRoot } from './answer-format.js';
import { fitCacheBreakpoints } from './cache-breakpoints.js';
import { fitCallArguments } from './call-arguments.js';
import { fitCustomTools } from './custom-tools.js';
import type { AnswerRestorer, Fit, FitContext, Fitted } from './fitted.js';
import { fitHiddenReasoning } from './hidden-reasoning.js';
import { fitSignedCalls } from './signed-calls.js';
import { fitStopSequences } from './stop-sequences.js';
import { fitStrictTools } from './strict-tools.js';
import { fitSameTools, fitToolNames } from './tool-names.js';
import { fitToolResults } from './tool-results.js';
import { fitToolRoots } from './tool-roots.js';
import { fitFirstTurn, fitPrefill } from './turns.js';
import { fitWebSearch } from './web-search.js';

/** Changes to tools, their calls and results. */
const toolFits: readonly Fit[] = [
  fitSameTools,
  fitToolRoots,
  fitStrictTools,
  fitCustomTools,
  fitToolNames,
  fitCallArguments,
  fitToolResults,
];

/** In the order in which they are applied to a request. */
const fits: readonly Fit[] = [
  fitWebSearch,
  fitStopSequences,
  fitOutputRoot,
  fitAnswerSchema,
  fitTools,
  fitPrefill,
  fitFirstTurn,
  fitJsonWord,
  // Answers pass these in reverse order: tokens receive their text before calls carry them.
  fitSignedCalls,
  fitHiddenReasoning,
  // After all other changes to the prompt, since marks depend on what is sent.
  fitCacheBreakpoints,
  fitSettings,
];

/** Changes a request so that the encoder of its target can write it. See the files of this folder. */
export function fitRequest(request: ConversationRequest, context: FitContext): Fitted {
  return inOrder(fits, request, context);
}

function fitTools(request: ConversationRequest, context: FitContext): Fitted | null {
  return hasTools(request) ? inOrder(toolFits, request, context) : null;
}

function hasTools({ tools, toolChoice, turns }: ConversationRequest): boolean {
  if (tools.length > 0 || toolChoice !== null) return true;
  for (const turn of turns)
    if (turn.role !== 'system')
      for (const { kind } of turn.parts) if (kind === 'toolCall' || kind === 'toolResult') return true;
  return false;
}

function inOrder(changes: readonly Fit[], request: ConversationRequest, context: FitContext): Fitted {
  let fitted = request;
  const restorers: AnswerRestorer[] = [];
  for (const change of changes) {
    const changed = change(fitted, context);
    if (changed === null) continue;
    fitted = changed.request;
    if (changed.restorer !== null) restorers.unshift(changed.restorer);
  }
  const restorer = restorers.length < 2 ? (restorers[0] ?? null) : new Joined(restorers);
  return { request: fitted, restorer };
}

/** Runs several restorers in turn, beginning with that of the last change. */
class Joined implements AnswerRestorer {
  readonly #restorers: readonly AnswerRestorer[];

  constructor(restorers: readonly AnswerRestorer[]) {
    this.#restorers = restorers;
  }

  get changesText(): boolean {
    return this.#restorers.some(({ changesText }) => changesText);
  }

  event(event: StreamEvent, out: StreamEvent[]): void {
    let events = [event];
    for (const restorer of this.#restorers) {
      const next: StreamEvent[] = [];
      for (const each of events) restorer.event(each, next);
      events = next;
    }
    out.push(...events);
  }

  answer(answer: Answer): Answer {
    return this.#restorers.reduce((each, restorer) => restorer.answer(each), answer);
  }
}

/** Records settings for which the target's protocol has no member. Its encoder ignores them. */
function fitSettings(request: ConversationRequest, { rules, options, leftOut }: FitContext): Fitted | null {
  const { hostedTools, topK } = options;
  const takesTopK = rules.topK === 'always' || (rules.topK === 'option' && topK);
  if (request.topK !== null && !takesTopK) leaveOut(request, 'topK', leftOut);
  for (const setting of rules.lacks) {
    if (setting === 'serving') for (const name of Object.keys(request.serving ?? {})) leftOut.add(name);
    else if (isSet(request, setting)) leaveOut(request, setting, leftOut);
  }
  if (hostedTools === 'drop') for (const tool of request.hostedTools) leftOut.add(nameOf(tool));
  if (losesReasoning(request, rules, options)) leaveOut(request, 'signature', leftOut);
  if (rules.lacks.includes('serving') && request.stored === true) leftOut.add('store');
  return null;
}

/** The list that contains the tool, and its type: `tools.web_search`. */
function nameOf({ type, at }: HostedTool): string {
  const [list = ''] = at.split(/[.[]/, 1);
  return list === type ? type : `${list}.${type}`;
}

/**
 * An upstream only accepts reasoning that its own vendor signed. Text and signature may be separate parts, so a turn
 * counts if all of its reasoning is lost. Unsigned reasoning before a finished answer does not count, since no upstream
 * asks for it.
 */
function losesReasoning(
  { turns }: ConversationRequest,
  { protocol, reasoning: kept }: RequestRules,
  target: TargetOptions,
): boolean {
  return turns.some((turn) => {
    if (turn.role !== 'assistant') return false;
    const reasoning = turn.parts.filter((part) => part.kind === 'reasoning');
    const isKept = (part: ReasoningPart) => {
      const signature = signatureFor(protocol, part.signature);
      if (signature === null || !isFor(signature, target)) return false;
      return signature.value !== '' || kept !== 'signed' || target.unsignedThinking;
    };
    const isWanted =
      turn.parts.some(({ kind }) => kind === 'toolCall') ||
      reasoning.some(({ signature }) => isOfVendor(signature));
    return reasoning.length > 0 && isWanted && !reasoning.some(isKept);
  });
}

/** Returns whether a setting differs from its default. */
function isSet(request: ConversationRequest, setting: Setting): boolean {
  switch (setting) {
    case 'parallelCalls':
      return request.parallelCalls === false;
    case 'presencePenalty':
    case 'frequencyPenalty':
      return (request[setting] ?? 0) !== 0;
    default:
      return isSetByClient(request, setting);
  }
}
