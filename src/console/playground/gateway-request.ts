import type { JsonObject } from './json.js';

/** A request to the gateway, for the relay and for code samples. */
export interface GatewayRequest {
  readonly method: 'GET' | 'POST';
  /** Path with its query. */
  readonly path: string;
  /** Headers besides the credential and the content type. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject | null;
}

export function post(
  path: string,
  body: JsonObject,
  headers: GatewayRequest['headers'] = {},
): GatewayRequest {
  return { method: 'POST', path, headers, body };
}

/**
 * The path of a method of generateContent.
 * @param method method with its query
 */
export function generateContentPath(model: string, method: string): string {
  // Some model names contain a slash, which SDKs do not encode.
  return `/v1beta/models/${encodeURIComponent(model).replaceAll('%2F', '/')}:${method}`;
}

export function get(path: string): GatewayRequest {
  return { method: 'GET', path, headers: {}, body: null };
}
