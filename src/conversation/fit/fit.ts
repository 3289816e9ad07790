import type { Answer } from '../answer.js';
import type { StreamEvent } from '../events.js';
import type { ConversationRequest } from '../request.js';
import { fitAnswerSchema, fitJsonWord, fitOutputRoot } from './answer-format.js';
import { fitCacheBreakpoints } from './cache-breakpoints.js';
import { fitCallArguments } from './call-arguments.js';
import { fitCustomTools } from './custom-tools.js';
import type { AnswerRestorer, Fit, FitContext, Fitted } from './fitted.js';
import { fitHiddenReasoning } from './hidden-reasoning.js';
import { fitSettings } from './settings.js';
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
