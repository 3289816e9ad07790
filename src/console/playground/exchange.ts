import { type ReadonlySignal, signal } from '@preact/signals';
import type { CallRecord } from './record.js';
import type { TextAnswer } from './text-answer.js';

/** What was made, and where this page has it. */
export type Made =
  | { readonly kind: 'image'; readonly url: string; readonly file: string; readonly prompt: string }
  | { readonly kind: 'audio' | 'video' | 'file'; readonly url: string; readonly file: string }
  /** An image at an address of somebody else, whence this page loads nothing. */
  | { readonly kind: 'elsewhere'; readonly url: string }
  | { readonly kind: 'broken'; readonly problem: string };

/** What has come of a prompt so far. */
export interface ExchangeState {
  readonly answer: Pick<TextAnswer, 'text' | 'reasoning' | 'calls'> | null;
  readonly made: readonly Made[];
  /** How far it is; the percent is null where it is not known. */
  readonly progress: { readonly said: string; readonly percent: number | null } | null;
  /** What went wrong, or an error that the gateway answered. */
  readonly problem: string | { readonly status: number; readonly body: string } | null;
  /** How it went, once it has ended. */
  readonly end: { readonly record: CallRecord; readonly note: string | null } | null;
}

/** A prompt and what comes of it. */
export interface PlaygroundExchange {
  readonly prompt: string;
  readonly state: ReadonlySignal<ExchangeState>;
  /** Shows the text that has come so far. */
  showText(answer: TextAnswer): void;
  showMade(made: Made): void;
  /** @param percent null where it is not known */
  showProgress(said: string, percent: number | null): void;
  showProblem(message: string): void;
  /** Shows an error that the gateway answered. */
  showRefusal(status: number, body: string): void;
  end(record: CallRecord, note: string | null): void;
}

export function createPlaygroundExchange(prompt: string): PlaygroundExchange {
  const state = signal<ExchangeState>({ answer: null, made: [], progress: null, problem: null, end: null });
  const change = (changed: Partial<ExchangeState>): void => {
    state.value = { ...state.value, ...changed };
  };
  return {
    prompt,
    state,
    showText: ({ text, reasoning, calls, error }) =>
      change({
        answer: { text, reasoning, calls: [...calls] },
        ...(error === null ? {} : { problem: error }),
      }),
    showMade: (made) => change({ made: [...state.value.made, made] }),
    showProgress: (said, percent) => change({ progress: { said, percent }, problem: null }),
    showProblem: (problem) => change({ problem }),
    showRefusal: (status, body) => change({ problem: { status, body } }),
    end: (record, note) => change({ end: { record, note } }),
  };
}
