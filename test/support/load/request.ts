export const loadKey = 'sk-load';
/** Output of `model-gateway key hash sk-load`, without loading the gateway here. */
export const loadKeyHash = 'sha256:b0c5ce5656022339074d03bcddd6241e1659c198dc9e4dbd70059a17abe61f15';

/** What the load upstream does; it reads this from the request's `user`. */
type LoadBehaviour =
  /** A completion of about 1 KB, immediately or after a delay. */
  | { readonly does: 'complete'; readonly afterMs?: number }
  /** An event at an interval, then the end, or a broken connection in its place. */
  | { readonly does: 'stream'; readonly events: number; readonly everyMs: number; readonly cut?: boolean }
  /** Events as fast as they are read. */
  | { readonly does: 'flood'; readonly megabytes: number }
  /** A completion once this many requests have arrived, or ten seconds after the first of them. */
  | { readonly does: 'gate'; readonly requests: number }
  /** An error with status 500. */
  | { readonly does: 'fail' };

interface RequestOptions {
  /** Name of the request in the upstream's reports. */
  readonly name?: string;
  /** Characters of the prompt. */
  readonly promptLength?: number;
  readonly key?: string;
  readonly model?: string;
  /** Text to send in place of the JSON body. */
  readonly body?: string;
}

/** Returns the bytes of a chat request to which the load upstream answers in this way. */
export function loadRequest(behaviour: LoadBehaviour, options: RequestOptions = {}): Buffer {
  const { does, ...settings } = behaviour;
  const user = new URLSearchParams({ does, name: options.name ?? '' });
  for (const [name, value] of Object.entries(settings)) user.set(name, String(value));
  const body =
    options.body ??
    JSON.stringify({
      model: options.model ?? 'm',
      user: user.toString(),
      stream: does === 'stream' || does === 'flood',
      messages: [{ role: 'user', content: 'prompt '.repeat((options.promptLength ?? 900) / 7) }],
    });
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: load\r\nauthorization: Bearer ${options.key ?? loadKey}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** Returns the bytes of a request for the list of models. */
export const modelsRequest: Buffer = Buffer.from(
  `GET /v1/models HTTP/1.1\r\nhost: load\r\nauthorization: Bearer ${loadKey}\r\n\r\n`,
);
