import { CallQueue } from '../../conversation/call-queue.js';
import type { ToolCallPart } from '../../conversation/request.js';

/** Calls in the `function_call` form that have no result yet: results name the function alone. */
export class FunctionCalls {
  readonly #all = new CallQueue();
  readonly #byName = new Map<unknown, CallQueue>();

  add({ id, name }: Pick<ToolCallPart, 'id' | 'name'>): void {
    const call = { id, isAnswered: false };
    this.#all.add(call);
    let named = this.#byName.get(name);
    if (named === undefined) {
      named = new CallQueue();
      this.#byName.set(name, named);
    }
    named.add(call);
  }

  /** @returns id of the first call of the function or, where none has its name, of any; null where there is none */
  take(name: unknown): string | null {
    const call = this.#byName.get(name)?.take() ?? this.#all.take();
    return call === null ? null : call.id;
  }
}
