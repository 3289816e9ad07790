import { demoKeys } from '../config/demo.js';
import type { AdminAccess } from './operate.js';

/**
 * What a gateway without a config says when it is ready: where each SDK finds it, the key, and one command to paste.
 * @param url of the gateway, without a path
 * @param admin where operators sign in
 * @param said of the Node that it runs on, where that is not the user's
 */
export function demoBanner(url: string, admin: AdminAccess | null, said: string | null): string {
  const body = '{"model":"sim-text","messages":[{"role":"user","content":"Hello"}]}';
  return `
Model gateway, demo: every model is simulated, and only this machine can reach it.
${said === null ? '' : `${said}.\n`}
  Base URLs   chat and responses SDKs      ${url}/v1
              messages SDKs                ${url}
              generateContent SDKs         ${url}
  Key         ${demoKeys.default}
${admin === null ? '' : `  Operators   ${admin.url}/ (console, metrics), with the token ${admin.token}\n`}
  curl ${url}/v1/chat/completions -H 'authorization: Bearer ${demoKeys.default}' -H 'content-type: application/json' -d '${body}'

`;
}
