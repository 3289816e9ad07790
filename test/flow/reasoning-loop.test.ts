import { test } from 'tap';
import { type JsonObject, parseObject } from '../../src/wire/json.js';
import type { Answer, Ask, Client } from '../suites/translation/client.js';
import { clients } from '../suites/translation/session.js';
import { tools } from '../suites/translation/tool-scenarios.js';
import { framed } from '../support/events.js';
import { startGateway } from '../support/gateway.js';
import { listAt } from '../support/json.js';
import { postJson } from '../support/post-json.js';
import { startHttpUpstream } from '../support/upstream.js';
import { otherAccount, thought, type Vendor, vendors } from './reasoning-vendors.js';

async function startVendors(
  t: Parameters<typeof startGateway>[0],
  vendors: readonly Vendor[],
): ReturnType<typeof startGateway> {
  const upstream = await startHttpUpstream(t, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const vendor = vendors.find(({ name }) => request.url?.startsWith(`/${name}/`)) as Vendor;
      const body = parseObject(Buffer.concat(chunks).toString()) ?? {};
      const refusal = vendor.refusal(body);
      if (refusal !== null) {
        response.writeHead(400, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: refusal } }),
        );
        return;
      }
      const isAnswered = vendor.isAnswered(body);
      if (body.stream === true || request.url?.includes('streamGenerateContent')) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const event of isAnswered ? vendor.saidEvents : vendor.callEvents(body))
          response.write(framed(vendor.wire, event));
        response.end(vendor.wire === 'chat' ? 'data: [DONE]\n\n' : '');
        return;
      }
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify((isAnswered ? vendor.said : vendor.call(body))[0]));
    });
  });
  const protocols = clients.map(({ protocol }) => protocol);
  return startGateway(t, {
    upstreams: [],
    config: {
      upstreams: Object.fromEntries(
        vendors.map(({ name, kind }) => [name, { kind, baseUrl: `${upstream.origin}/${name}/v1` }]),
      ),
      models: Object.fromEntries(
        vendors.map(({ name, target }) => [
          name,
          { protocols, targets: [{ upstream: name, model: `of-${name}`, ...target }] },
        ]),
      ),
    },
  });
}

async function send(url: string, client: Client, model: string, ask: Ask): Promise<Answer> {
  const request = client.request(model, ask);
  const response = await postJson(url + request.path, request.body, request.headers);
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return ask.stream ? client.readStream(text) : client.readWhole(JSON.parse(text));
}

const standardBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * What real clients keep of an answer: chat's often nothing but the calls; the command line of generateContent's vendor no
 * thoughts, and its python SDK decodes signatures and writes them in the other alphabet.
 */
function kept(client: Client, turns: readonly unknown[]): readonly unknown[] {
  if (client.protocol === 'chat')
    return (turns as JsonObject[]).map(({ role, content, tool_calls }) => ({ role, content, tool_calls }));
  if (client.protocol !== 'generateContent') return turns;
  return (turns as JsonObject[]).map((turn) => ({
    ...turn,
    parts: listAt(turn, 'parts')
      .filter((part) => part.thought !== true)
      .map((part) => {
        const { thoughtSignature: signature } = part;
        if (typeof signature !== 'string') return part;
        if (!standardBase64.test(signature)) throw new Error(`no base64: ${signature}`);
        return { ...part, thoughtSignature: Buffer.from(signature, 'base64').toString('base64url') };
      }),
  }));
}

test('reasoning comes back to the upstream that wants it, from every client', async (t) => {
  const { url } = await startVendors(t, vendors);
  for (const vendor of vendors) {
    for (const client of clients) {
      if (client.protocol === vendor.wire) continue;
      for (const thinks of ['shown', 'hidden', undefined] as const) {
        for (const stream of [false, true]) {
          const name = `${client.protocol} on ${vendor.name}, ${thinks ?? 'not asked for'}${stream ? ', streamed' : ''}`;
          const ask: Ask = {
            stream,
            tools,
            turns: client.user('How is it?'),
            ...(thinks === undefined ? {} : { thinks }),
          };
          const first = await send(url, client, vendor.name, ask).catch(String);
          if (typeof first === 'string') {
            t.fail(`${name}: ${first}`);
            continue;
          }
          const isShown = client.protocol === 'chat' || thinks === 'shown';
          if (vendor.wire === 'chat' && vendor.name !== 'signed-calls')
            t.equal(first.reasoning, isShown ? thought : '', `${name}: the reasoning`);
          const results = client.results(first.calls.map((call) => ({ call, output: 'sunny' })));
          const turns = [...ask.turns, ...kept(client, first.turns), ...results];
          const second = await send(url, client, vendor.name, { ...ask, turns }).catch(String);
          t.equal(typeof second === 'string' ? second : second.text, 'sunny', name);
        }
      }
    }
  }
});

test('reasoning that one upstream has encrypted does not reach another, which would refuse it', async (t) => {
  const { url } = await startVendors(t, [...vendors, otherAccount]);
  for (const client of clients)
    for (const stream of [false, true]) {
      if (client.protocol === 'responses') continue;
      const ask: Ask = { stream, tools, turns: client.user('How is it?'), thinks: 'shown' };
      const first = await send(url, client, 'responses', ask);
      const results = client.results(first.calls.map((call) => ({ call, output: 'sunny' })));
      const turns = [...ask.turns, ...kept(client, first.turns), ...results];
      for (const name of ['responses', otherAccount.name]) {
        const second = await send(url, client, name, { ...ask, turns });
        t.equal(second.text, 'sunny', `${client.protocol} on ${name}`);
      }
    }
});
