import { createRequire } from 'node:module';

/** Translation as a library has it: run with its port, the address of chat completions and the model's name there. */
// Its module for `import` asks for what only CommonJS has.
const { default: Server } = createRequire(import.meta.url)('@musistudio/llms');
const [port, address, model] = process.argv.slice(2);
const server = new Server({
  useJsonFile: false,
  useEnvFile: false,
  logger: false,
  initialConfig: {
    HOST: '127.0.0.1',
    PORT: port,
    providers: [{ name: 'bench', api_base_url: address, api_key: 'sk-upstream', models: [model] }],
  },
});
// It wants the provider before the model, where clients send the model alone.
server.addHook('preHandler', async ({ body }) => {
  if (body?.model) body.model = `bench,${body.model}`;
});
await server.start();
