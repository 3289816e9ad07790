import { signal } from '@preact/signals';

const tokenName = 'admin-token';

/** Whether the tab's token may make changes; actions that do are offered only then. */
export const mayWrite = signal(true);

/** An error answer of the admin listener. */
export class ApiError extends Error {
  readonly status: number;
  /** The invalid field, or null. */
  readonly param: string | null;
  /** The whole body, if it was JSON. */
  readonly body: unknown;

  constructor(status: number, message: string, param: string | null, body: unknown) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.param = param;
    this.body = body;
  }
}

/** The token of this tab, which is lost when the tab closes. */
export function savedToken(): string | null {
  return sessionStorage.getItem(tokenName);
}

export function saveToken(token: string): void {
  sessionStorage.setItem(tokenName, token);
}

/** Clears everything that the tab keeps, since it belongs to the token's owner. */
export function forgetToken(): void {
  sessionStorage.clear();
}

interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** Token to try in place of the tab's. */
  readonly token?: string;
}

/** Receives an event when the tab's token is no longer valid. */
export const signedOut = new EventTarget();

/**
 * Sends a request to the admin listener.
 * @throws {ApiError} for a status of 400 and above; with status 0 if it cannot be reached
 */
export async function ask(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = 'GET', body, signal, token = savedToken() ?? '' } = options;
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const init: RequestInit = { method, headers, cache: 'no-store' };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal !== undefined) init.signal = signal;
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'The gateway cannot be reached.', null, null);
  }
  if (response.ok) {
    mayWrite.value = response.headers.get('x-admin-access') === 'write';
    return response;
  }
  const error = await errorOf(response);
  if (error.status === 401 && options.token === undefined) signedOut.dispatchEvent(new Event('signed-out'));
  throw error;
}

/** The same for an answer in JSON, whose form the caller knows. */
export async function askJson<Answer>(path: string, options: RequestOptions = {}): Promise<Answer> {
  const response = await ask(path, options);
  return (await response.json()) as Answer;
}

/** Downloads a file, with the token. */
export async function download(path: string, name: string): Promise<void> {
  const response = await ask(path);
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    return new ApiError(response.status, text || response.statusText, null, null);
  }
  const said = (body as { error?: { message?: unknown; param?: unknown } } | null)?.error;
  const message = typeof said?.message === 'string' ? said.message : response.statusText;
  return new ApiError(response.status, message, typeof said?.param === 'string' ? said.param : null, body);
}
