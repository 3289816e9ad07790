import { type ReadonlySignal, signal } from '@preact/signals';
import type { CallRecord } from './record.js';
import type { TextAnswer } from './text-answer.js';

/** A generated result, by its URL in this page. */
export type Made =
  | { readonly kind: 'image'; readonly url: string; readonly file: string; readonly prompt: string }
  | { readonly kind: 'audio' | 'video' | 'file'; readonly url: string; readonly file: string }
  /** An image at another host, from which this page loads nothing. */
  | { readonly kind: 'elsewhere'; readonly url: string }
  | { readonly kind: 'broken'; readonly problem: string };

/** The current result of a prompt. */
export interface ExchangeState {
  readonly answer: Pick<TextAnswer, 'text' | 'reasoning' | 'calls'> | null;
  readonly made: readonly Made[];
  /** The progress; the percentage is null if unknown. */
  readonly progress: { readonly said: string; readonly percent: number | null } | null;
  /** An error message, or an error answer of the gateway. */
  readonly problem: string | { readonly status: number; readonly body: string } | null;
  /** The record of the call, once it has ended. */
  readonly end: { readonly record: CallRecord; readonly note: string | null } | null;
}

/** A prompt and its result. */
export interface PlaygroundExchange {
  readonly prompt: string;
  readonly state: ReadonlySignal<ExchangeState>;
  /** Shows the text received so far. */
  showText(answer: TextAnswer): void;
  showMade(made: Made): void;
  /** @param percent null if unknown */
  showProgress(said: string, percent: number | null): void;
  showProblem(message: string): void;
  /** Shows an error answer of the gateway. */
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
