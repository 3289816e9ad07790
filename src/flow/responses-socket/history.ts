import type { HeldPart } from '../../http/socket.js';
import { joinItems, madeResponse, readConversation } from '../../protocols/responses/socket-message.js';

const nothing = Buffer.alloc(0);

/**
 * The newest response of a socket, with all that was said before it: a client goes on from it by its id alone, though
 * the upstream that made it may know nothing of it any more.
 */
export class ResponseHistory {
  readonly #room: HeldPart;
  readonly #most: number;
  #id: string | null = null;
  #items: Buffer = nothing;
  /** What the running call's answer is added to; null when it need not be kept. */
  #running: string | null = null;
  #isStored = true;

  /**
   * @param room where what is kept is counted
   * @param most bytes that are kept at most
   */
  constructor(room: HeldPart, most: number) {
    this.#room = room;
    this.#most = most;
  }

  /**
   * Begins a call.
   * @param isKnown says of the newest response whether who makes the next one knows it
   * @returns the body to send: the same, or one with the whole conversation
   */
  begin(body: Buffer, isKnown: boolean): { readonly body: Buffer; readonly previousId: string | null } {
    this.#running = null;
    const message = readConversation(body);
    if (message === null) return { body, previousId: null };
    const isKept = message.previousId !== null && message.previousId === this.#id;
    const before = isKept ? this.#items.toString('utf8') : '';
    const all = joinItems(before, message.items);
    // What cannot be gone back to is not kept: its beginning is missing.
    if ((message.previousId === null || isKept) && all.length <= this.#most) this.#running = all;
    this.#isStored = message.store !== false;
    if (!isKept || isKnown) return { body, previousId: message.previousId };
    return { body: message.withItems(all), previousId: null };
  }

  /** Says what the running call's input is, which goes on from a response that was not kept here. */
  resume(items: string): void {
    if (items.length <= this.#most) this.#running = items;
  }

  /**
   * Hears of every event of the running call's answer.
   * @param isUpstreams an upstream of the protocol made it, which keeps what it is to store
   */
  onEvent(event: string, isUpstreams: boolean): void {
    const before = this.#running;
    if (before === null || (this.#isStored && isUpstreams)) return;
    const made = madeResponse(event);
    if (made !== null) this.#keep(made.id, Buffer.from(joinItems(before, made.items)));
  }

  clear(): void {
    this.#room.hold(0);
    this.#id = null;
    this.#items = nothing;
    this.#running = null;
  }

  #keep(id: string, items: Buffer): void {
    this.clear();
    if (items.length > this.#most || !this.#room.hold(items.length)) return;
    this.#id = id;
    this.#items = items;
  }
}
