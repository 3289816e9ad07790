import { duration, whole } from '../format.js';
import type { ExchangeState, Made, PlaygroundExchange } from './exchange.js';
import { parseJson } from './json.js';
import type { CallRecord } from './record.js';
import { readRefusal } from './refusal.js';
import type { DraftCall } from './text-answer.js';

/** A list item with a prompt and its result. */
export function ExchangeItem({ exchange: { prompt, state } }: { readonly exchange: PlaygroundExchange }) {
  const { answer, made, progress, problem, end } = state.value;
  const reasoning = answer?.reasoning ?? '';
  const hasText = answer !== null && (answer.text !== '' || answer.calls.length > 0);
  const said = reasoning !== '' ? 'Thinking …' : (progress?.said ?? 'Waiting …');
  return (
    <li class="exchange">
      <div class="asked">{prompt}</div>
      <div class="answer" aria-busy={end === null}>
        <details class="thinking" hidden={reasoning === ''}>
          <summary>Thinking</summary>
          <div class="said">{reasoning}</div>
        </details>
        <div class="said">{answer?.text}</div>
        <div class="calls">
          {answer?.calls.map((call) => (
            <ToolCall key={call.key} call={call} />
          ))}
        </div>
        <div class="made">
          {made.map((each, index) => (
            <MadeItem key={index} made={each} />
          ))}
        </div>
        <p class="hint" hidden={end !== null || hasText}>
          {said}
        </p>
        {progress !== null && end === null && (
          <progress aria-label="Progress" max={100} value={progress.percent ?? undefined} />
        )}
        <div role="alert">{problem !== null && <Problem problem={problem} />}</div>
        <p class="facts-line">{end !== null && <Facts {...end} />}</p>
      </div>
    </li>
  );
}

function ToolCall({ call }: { readonly call: DraftCall }) {
  return (
    <figure class="call">
      <figcaption>{`Calls ${call.name}`}</figcaption>
      <pre class="code">{formatted(call.arguments)}</pre>
    </figure>
  );
}

/** JSON formatted over several lines; any other text is unchanged. */
function formatted(text: string): string {
  const value = parseJson(text);
  return value === undefined ? text : JSON.stringify(value, null, 2);
}

function MadeItem({ made }: { readonly made: Made }) {
  switch (made.kind) {
    case 'broken':
      return <p class="problem">{made.problem}</p>;
    case 'elsewhere':
      return (
        <p>
          {'The image is elsewhere, and this page loads nothing from there: '}
          <a href={webAddress(made.url)} target="_blank" rel="noreferrer noopener">
            {made.url}
          </a>
        </p>
      );
    case 'file':
      return <SaveLink {...made} />;
    case 'image':
      return (
        <figure>
          <img src={made.url} alt={made.prompt} />
          <SaveLink {...made} />
        </figure>
      );
    case 'audio':
      return (
        <figure>
          <audio src={made.url} controls aria-label="Speech" />
          <SaveLink {...made} />
        </figure>
      );
    case 'video':
      return (
        <figure>
          <video src={made.url} controls aria-label="Video" />
          <SaveLink {...made} />
        </figure>
      );
  }
}

/** A URL from an upstream, if it is http(s): others could contain a script. */
function webAddress(url: string): string | undefined {
  return /^https?:\/\//i.test(url) ? url : undefined;
}

function SaveLink({ url, file }: { readonly url: string; readonly file: string }) {
  return (
    <a class="button" href={url} download={file}>
      {`Download ${file}`}
    </a>
  );
}

function Problem({ problem }: { readonly problem: NonNullable<ExchangeState['problem']> }) {
  if (typeof problem === 'string') return <p class="problem">{problem}</p>;
  const { status, body } = problem;
  const { message, kind, param } = readRefusal(status, body);
  return (
    <>
      <p class="problem">
        <strong>{kind === null ? `${status}` : `${status} ${kind}`}</strong>
        {` ${message}${param === null ? '' : ` (${param})`}`}
      </p>
      <details class="more">
        <summary>The whole body</summary>
        <pre class="code">{formatted(body)}</pre>
      </details>
    </>
  );
}

function Facts({ record, note }: { readonly record: CallRecord; readonly note: string | null }) {
  const { status, headers, totalMs, tokens, finish } = record;
  const id = headers['x-request-id'];
  const path = headers['x-gateway-path'];
  return (
    <>
      {note !== null && (
        <span class="badge" data-tone="warn">
          {note}
        </span>
      )}
      {status !== null && (
        <span class="badge" data-tone={status < 400 ? 'good' : 'bad'}>
          {status}
        </span>
      )}
      {path !== undefined && (
        <span class="badge" title="How the gateway passed it on">
          {path}
        </span>
      )}
      {finish !== null && <span title="Why it ended">{finish}</span>}
      {totalMs !== null && <span>{duration(totalMs / 1000)}</span>}
      {tokens !== null && <span>{`${whole(tokens.input)} tokens in, ${whole(tokens.output)} out`}</span>}
      {id !== undefined && (
        <a href="#requests" title="Look at the recent requests">
          {id}
        </a>
      )}
    </>
  );
}
