import type { Test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { testKey } from '../gateway.js';
import { temporaryFolder } from '../temporary-folder.js';

/** A key of the same group as `testKey`, and one of another group. Both may use every model. */
export const mateKey = 'sk-mate';
export const strangerKey = 'sk-stranger';

export interface MediaOptions {
  readonly upstreams: Record<string, Record<string, unknown>>;
  readonly models: Record<string, Record<string, unknown>>;
  /** Further parts of the config. */
  readonly config?: Record<string, unknown>;
  /** Folder of the store, for gateways that share one. Default: one of its own. */
  readonly storePath?: string;
}

/**
 * Makes the config of a gateway with keys of two groups and an embedded store on disk, which is removed after the
 * test.
 */
export function mediaConfig(t: Pick<Test, 'teardown'>, options: MediaOptions): Record<string, unknown> {
  return {
    store: { kind: 'embedded', path: options.storePath ?? temporaryFolder(t) },
    upstreams: Object.fromEntries(
      Object.entries(options.upstreams).map(([name, upstream]) => [
        name,
        { kind: 'chat', apiKeys: ['upstream-key'], ...upstream },
      ]),
    ),
    models: options.models,
    groups: { default: { models: ['*'] }, strangers: { models: ['*'] } },
    keys: [
      { id: 'test', hash: hashKey(testKey), groups: ['default'] },
      { id: 'mate', hash: hashKey(mateKey), groups: ['default'] },
      { id: 'stranger', hash: hashKey(strangerKey), groups: ['strangers'] },
    ],
    ...options.config,
  };
}

export interface Heard {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
  /** The body if it is a JSON object, else empty. */
  readonly json: Readonly<Record<string, unknown>>;
}

export interface MediaRequest {
  /** JSON, a form, or bytes. */
  readonly body?: object | FormData | Buffer;
  readonly headers?: Record<string, string>;
  /** Default: `testKey`; null for none. */
  readonly key?: string | null;
  readonly signal?: AbortSignal;
}

/** Sends one request and reads its answer to the end. */
export async function ask(
  gateway: { readonly url: string },
  method: string,
  path: string,
  { body, headers = {}, key = testKey, signal }: MediaRequest = {},
): Promise<Heard> {
  const isJson = body !== undefined && !(body instanceof FormData) && !Buffer.isBuffer(body);
  const answer = await fetch(gateway.url + path, {
    method,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(isJson ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : (body as FormData) }),
    ...(signal === undefined ? {} : { signal }),
    redirect: 'manual',
  });
  return heard(answer);
}

async function heard(answer: Response): Promise<Heard> {
  const bytes = Buffer.from(await answer.arrayBuffer());
  const text = bytes.toString();
  const isJson = /json/.test(answer.headers.get('content-type') ?? '') && text !== '';
  return {
    status: answer.status,
    headers: answer.headers,
    bytes,
    text,
    json: isJson ? (JSON.parse(text) as Record<string, unknown>) : {},
  };
}

/** One field of a form. A repeated name is a repeated field. */
export type Field = readonly [name: string, value: string | File];

/** Makes a form of these fields, in order. */
export function formOf(fields: readonly Field[]): FormData {
  const form = new FormData();
  for (const [name, value] of fields) form.append(name, value);
  return form;
}

/** Makes a file for a form. */
export function file(name: string, type: string, bytes: Buffer): File {
  return new File([new Uint8Array(bytes)], name, { type });
}
