import { fill, h, setText } from '../../dom.js';
import { plural } from '../../words.js';
import type { LoggedEvent } from './event-log.js';
import type { CallRecord } from './record.js';

/** A part that shows a call's record. Nothing is done while it is out of sight. */
export interface RecordPane {
  readonly element: HTMLElement;
  /** Shows what is new. */
  update(record: CallRecord): void;
}

/** As near to its end, a list that scrolls stays at its end. */
const nearPx = 40;

/** The events of an answer as they came, and the head before them. */
export function createEventsPane(): RecordPane {
  const summary = h('summary', {}, 'Answer headers');
  const headers = h('dl', { class: 'headers' });
  const head = h('details', { class: 'more', hidden: true }, summary, headers);
  const list = h('ol', { class: 'events', tabIndex: 0, attributes: { 'aria-label': 'Events' } });
  const empty = h('p', { class: 'empty' }, 'Each event of the answer is listed here as it comes.');
  const count = h('p', { class: 'hint', attributes: { role: 'status' } });
  let shown: CallRecord | null = null;
  let headersOf: CallRecord['headers'] | null = null;
  let next = 0;

  const update = (record: CallRecord): void => {
    if (record !== shown) {
      shown = record;
      next = 0;
      fill(list, []);
    }
    const { log } = record;
    if (record.headers !== headersOf) {
      headersOf = record.headers;
      const entries = Object.entries(record.headers);
      head.hidden = entries.length === 0;
      setText(summary, `${record.status ?? ''} with ${plural(entries.length, 'header')}`);
      fill(
        headers,
        entries.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
      );
    }
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < nearPx;
    const fresh = log.events.filter(({ index }) => index >= next);
    list.append(...fresh.map(rowOf));
    next = log.count;
    while (list.childElementCount > log.events.length) list.firstElementChild?.remove();
    empty.hidden = log.count > 0;
    list.hidden = log.count === 0;
    const kept = log.events.length;
    setText(
      count,
      log.count > kept
        ? `The last ${kept} of ${log.count} events.`
        : log.count === 0
          ? ''
          : plural(log.count, 'event'),
    );
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  };
  return { element: h('div', { class: 'pane' }, head, empty, list, count), update };
}

function rowOf({ atMs, name, data }: LoggedEvent): Node {
  return h(
    'li',
    {},
    h('span', { class: 'at' }, `+${atMs.toFixed(atMs < 100 ? 1 : 0)} ms`),
    name === '' ? null : h('span', { class: 'event-name' }, name),
    h('pre', {}, data),
  );
}
