import replyFrom from '@fastify/reply-from';
import fastify from 'fastify';

/** A plain proxy: fastify, with undici to its upstream. Run with its port and the origin of the upstream. */
const [port, base] = process.argv.slice(2);
const app = fastify({ logger: false });
// Bodies stay streams, as its own proxy plugin has them.
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
// More connections than any work opens, as the gateway has it here.
app.register(replyFrom, {
  base,
  undici: { connections: 32_768, pipelining: 1 },
  disableRequestLogging: true,
});
app.post('/*', (request, reply) => reply.from(request.raw.url));
await app.listen({ host: '127.0.0.1', port: Number(port) });
