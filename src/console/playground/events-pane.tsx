import type { VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { plural } from '../words.js';
import type { LoggedEvent } from './event-log.js';
import type { CallRecord } from './record.js';

/** A list scrolled this near to its end stays at its end. */
const nearPx = 40;

/** Cached nodes of events, which never change: a list of thousands is updated many times a second. */
const drawn = new WeakMap<LoggedEvent, VNode>();

/** The head and the events of an answer, as received. */
export function EventsPane({ record: { log, status, headers } }: { readonly record: CallRecord }) {
  const list = useRef<HTMLOListElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (list.current !== null && isAtEnd.current) list.current.scrollTop = list.current.scrollHeight;
  });
  const named = Object.entries(headers);
  const kept = log.events.length;
  const follow = ({ currentTarget }: { readonly currentTarget: HTMLElement }): void => {
    const { scrollHeight, scrollTop, clientHeight } = currentTarget;
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < nearPx;
  };
  return (
    <>
      <details class="more" hidden={named.length === 0}>
        <summary>{`${status ?? ''} with ${plural(named.length, 'header')}`}</summary>
        <dl class="headers">
          {named.flatMap(([name, value]) => [
            <dt key={`${name} name`}>{name}</dt>,
            <dd key={name}>{value}</dd>,
          ])}
        </dl>
      </details>
      {log.count === 0 ? (
        <p class="empty">Each event of the answer is listed here as it comes.</p>
      ) : (
        <ol ref={list} class="events" aria-label="Events" tabIndex={0} onScroll={follow}>
          {log.events.map(rowOf)}
        </ol>
      )}
      <p class="hint" role="status">
        {log.count > kept
          ? `The last ${kept} of ${log.count} events.`
          : log.count > 0 && plural(log.count, 'event')}
      </p>
    </>
  );
}

function rowOf(event: LoggedEvent): VNode {
  const known = drawn.get(event);
  if (known !== undefined) return known;
  const { index, atMs, name, data } = event;
  const row = (
    <li key={index}>
      <span class="at">{`+${atMs.toFixed(atMs < 100 ? 1 : 0)} ms`}</span>
      {name !== '' && <span class="event-name">{name}</span>}
      <pre>{data}</pre>
    </li>
  );
  drawn.set(event, row);
  return row;
}
