// The command line. `main.ts` imports it, unless there are too few open files.
import { chownSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { demoConfig, demoKeys, isLoopback } from './config/demo.js';
import { codeText } from './config/files.js';
import { hostForm } from './config/host.js';
import { loadConfigApart } from './config/load-apart.js';
import { notesOf } from './config/notes.js';
import { ConfigError, formatProblem } from './config/problem.js';
import type { ResolvedConfig } from './config/resolve.js';
import { hashKey, newKey } from './keys/secret.js';
import { launch } from './supervisor/launch.js';
import { createLog, ignoreDebugSignal, logLevels } from './supervisor/log.js';
import type { AdminAccess } from './supervisor/operate.js';
import { UnusableHostError } from './supervisor/port.js';
import { supervise } from './supervisor/supervise.js';

const help = `Usage: model-gateway <command> [options]

  start                 run the gateway; without a config, as a demo on 127.0.0.1:8080
    --config FILE       config file (or GATEWAY_CONFIG)
    --host HOST         address to listen on (or HOST)
    --port PORT         port to listen on, 0 for any free one (or PORT)
    --take-over         replace the gateway that serves on the port, if there is one; it finishes its answers
    --workers N         worker processes, 0 for one per core (or WORKERS)
  check --config FILE   explain every error of a config file
  prices import FILE    look up the models of a config in LiteLLM's price list, and print their prices as config
    --config FILE       config file (or GATEWAY_CONFIG)
    --into FILE         config file to read and to write the prices into
    --replace           also replace prices that the config has already
  key new               make a key, and its hash for the config file
  key hash [KEY]        print the hash of a key, read from standard input unless given
  store export          write everything in a store to standard output, as lines of JSON
    --config FILE       config file that names the store (or GATEWAY_CONFIG)
    --redis URL         export what earlier versions kept in Redis instead; several URLs, separated by commas, are a cluster
    --prefix NAME       prefix of the keys in Redis (default: gw)
  store import --config FILE
                        read an export from standard input into an empty store
  store backup --config FILE --to FOLDER
                        copy an embedded store while gateways use it

  --help, --version

Environment: GATEWAY_CONFIG, HOST, PORT, WORKERS, LOG_LEVEL (${logLevels.join(', ')})
`;

/**
 * What a gateway without a config prints when it is ready: the base URL for each SDK, the key, and a command to paste.
 * @param url base URL of the gateway, without a path
 * @param admin address and token of the operators' listener
 * @param nodeNote which Node the gateway runs on, if it is not the caller's
 */
function demoBanner(url: string, admin: AdminAccess | null, nodeNote: string | null): string {
  const body = '{"model":"sim-text","messages":[{"role":"user","content":"Hello"}]}';
  return `
Model gateway, demo: every model is simulated, and only this machine can reach it.
${nodeNote === null ? '' : `${nodeNote}.\n`}
  Base URLs   chat and responses SDKs      ${url}/v1
              messages SDKs                ${url}
              generateContent SDKs         ${url}
  Key         ${demoKeys.default}
${admin === null ? '' : `  Operators   ${admin.url}/ (console, metrics), with the token ${admin.token}\n`}
  curl ${url}/v1/chat/completions -H 'authorization: Bearer ${demoKeys.default}' -H 'content-type: application/json' -d '${body}'

`;
}

/** A command line that is not valid. The process exits with code 2. */
class UsageError extends Error {}

const optionTypes = {
  config: { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  workers: { type: 'string' },
  'take-over': { type: 'boolean' },
  redis: { type: 'string' },
  prefix: { type: 'string' },
  to: { type: 'string' },
  into: { type: 'string' },
  replace: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

type Options = ReturnType<typeof readArguments>['values'];

function readArguments() {
  try {
    return parseArgs({ options: optionTypes, allowPositionals: true, strict: true });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // Node's own words for this take three lines.
    const [, option] = /^Option '(?:-\w, )?(--[\w-]+).* is ambiguous/.exec(message) ?? [];
    throw new UsageError(
      option === undefined
        ? message
        : `${option} needs a value; one that begins with "-" is written ${option}=VALUE`,
    );
  }
}

/**
 * Reads a whole number from the command line, or from the environment if the option is absent. An empty variable counts as
 * unset.
 */
function readNumber(option: string, given: string | undefined, most: number): number | null {
  const variable = option.toUpperCase();
  const text = given ?? (process.env[variable] || undefined);
  if (text === undefined) return null;
  if (/^\d{1,9}$/.test(text) && Number(text) <= most) return Number(text);
  throw new UsageError(
    `${given === undefined ? variable : `--${option}`} must be a number from 0 to ${most}`,
  );
}

/** Reads the address to listen on, like `readNumber`. */
function readHost(given: string | undefined): string | null {
  const text = given ?? (process.env.HOST || null);
  if (text === null || new RegExp(hostForm.pattern).test(text)) return text;
  throw new UsageError(`${hostSource(given)} must be ${hostForm.expected}`);
}

function hostSource(given: string | undefined): 'HOST' | '--host' {
  return given === undefined ? 'HOST' : '--host';
}

function configPath(options: Options): string | null {
  return options.config ?? (process.env.GATEWAY_CONFIG || null);
}

/** Reads the config file. Without one, returns the config of the demo. */
async function readConfig(path: string | null): Promise<ResolvedConfig> {
  if (path === null) return demoConfig(Math.floor(Date.now() / 1000));
  // That of a shell's <(…) has a writer already.
  if (!path.startsWith('/dev/') && statSync(path, { throwIfNoEntry: false })?.isFIFO())
    process.stderr.write(`${path} is a pipe: waiting for its writer\n`);
  // Imported only when needed: compiling the schema takes 200 ms, and the demo has to be ready within a second.
  const { loadConfig } = await import('./config/load.js');
  return loadConfig(path, process.env);
}

/** Bytes from which on a config file is read in a thread: the memory that parsing takes is freed when the thread ends. */
const largeConfig = 1024 * 1024;

function readAtStart(path: string | null): Promise<ResolvedConfig> {
  const { size = 0 } = path === null ? {} : (statSync(path, { throwIfNoEntry: false }) ?? {});
  return path !== null && size >= largeConfig ? loadConfigApart(path) : readConfig(path);
}

/**
 * Remembers SIGHUP during the start. Without a handler the signal would end the process.
 * @returns removes the handler, and says whether the signal has arrived
 */
function holdReloads(): () => boolean {
  let isRequested = false;
  const onSignal = (): void => {
    isRequested = true;
  };
  process.on('SIGHUP', onSignal);
  return () => {
    process.off('SIGHUP', onSignal);
    return isRequested;
  };
}

async function start(options: Options): Promise<number> {
  const level = process.env.LOG_LEVEL || 'info';
  if (!logLevels.some((known) => known === level)) {
    throw new UsageError(`LOG_LEVEL must be one of ${logLevels.join(', ')}`);
  }
  const path = configPath(options);
  const host = readHost(options.host);
  const port = readNumber('port', options.port, 65_535);
  const workers = readNumber('workers', options.workers, 1024);
  const nodeNote = await launch();
  const releaseReloads = holdReloads();
  const withOptions = (config: ResolvedConfig): ResolvedConfig => {
    const listen = { ...config.listen, host: host ?? config.listen.host, port: port ?? config.listen.port };
    return { ...config, listen, workers: workers ?? config.workers };
  };
  const config = withOptions(await readAtStart(path));
  if (config.demo && !isLoopback(config.listen.host)) {
    throw new UsageError(
      `without a config file the gateway uses keys that everybody knows, so it listens on loopback only, ` +
        `not on ${config.listen.host} (from ${hostSource(options.host)}); give it a --config`,
    );
  }
  process.env.LOG_LEVEL = level;
  const log = createLog('primary', level);
  ignoreDebugSignal(log.logger);
  if (nodeNote !== null) log.logger.info({ node: process.versions.node }, nodeNote);
  const supervised = supervise({
    config,
    configPath: path === null ? null : resolve(path),
    takeOver: options['take-over'] ?? false,
    version: version(),
    reload: async () => withOptions(path === null ? await readConfig(null) : await loadConfigApart(path)),
    releaseReloads,
    log,
    onListening(url, admin) {
      if (config.demo) process.stdout.write(demoBanner(url, admin, nodeNote));
    },
  });
  const code = await supervised.catch((error: unknown) => {
    if (host === null || !(error instanceof UnusableHostError)) throw error;
    throw new Error(`${error.message}; ${host} is from ${hostSource(options.host)}`);
  });
  await log.lines.written();
  return code;
}

function count(things: readonly unknown[], name: string): string {
  return `${things.length} ${name}${things.length === 1 ? '' : 's'}`;
}

async function check(options: Options): Promise<number> {
  const path = configPath(options);
  if (path === null) throw new UsageError('check needs --config FILE');
  const config = await readConfig(path);
  const parts = [
    count(config.upstreams, 'upstream'),
    count(config.models, 'model'),
    count(config.groups, 'group'),
    count(config.keys, 'key'),
  ];
  process.stdout.write(`${path} is valid: ${parts.join(', ')}\n`);
  for (const note of notesOf(config)) process.stdout.write(`note: ${note}\n`);
  return 0;
}

async function prices(
  options: Options,
  action: string | undefined,
  file: string | undefined,
): Promise<number> {
  if (action !== 'import' || file === undefined) throw new UsageError('prices needs "import" and a FILE');
  const path = options.into ?? configPath(options);
  if (path === null) throw new UsageError('prices import needs --config FILE, or --into FILE');
  const { importPrices, writePrices } = await import('./config/import-prices.js');
  const config = readText(path);
  const list = readText(file);
  let found: ReturnType<typeof importPrices>;
  try {
    found = importPrices(config, list, options.replace ?? false);
  } catch (error) {
    if (error instanceof ConfigError || !(error instanceof Error)) throw error;
    throw new Error(`${file}: ${error.message}`);
  }
  const models = Object.entries(found.prices).map(([name, price]) => [name, { price }]);
  if (options.into === undefined) {
    process.stdout.write(`${JSON.stringify({ models: Object.fromEntries(models) }, null, 2)}\n`);
  } else if (models.length > 0) {
    replaceFile(path, writePrices(config, found.prices));
  }
  if (options.into !== undefined)
    process.stdout.write(`${path} has prices from the list for ${count(models, 'model')}\n`);
  for (const note of found.notes) process.stderr.write(`note: ${note}\n`);
  return 0;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} cannot be read (${codeText(error)})`);
  }
}

/** Replaces a file atomically: readers see the old text or the new one. Symbolic links, mode and owner are kept. */
function replaceFile(path: string, text: string): void {
  const file = realpathSync(path);
  const { mode, uid, gid } = statSync(file);
  const next = `${file}.${process.pid}.new`;
  try {
    writeFileSync(next, text, { mode });
    if (process.getuid?.() === 0) chownSync(next, uid, gid);
    renameSync(next, file);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}

function key(action: string | undefined, given: string | undefined): number {
  if (action === 'new') {
    const fresh = newKey();
    process.stdout.write(`key   ${fresh}\nhash  ${hashKey(fresh)}\n`);
    return 0;
  }
  if (action !== 'hash') throw new UsageError('key needs "new" or "hash"');
  const text = (given ?? readFileSync(0, 'utf8')).trim();
  if (text === '') throw new UsageError('key hash needs a key, as an argument or on standard input');
  process.stdout.write(`${hashKey(text)}\n`);
  return 0;
}

async function store(action: string | undefined, options: Options): Promise<number> {
  // Imported only when needed: no other command uses these modules.
  const [{ exportStore, importStore }, { copyEmbedded }] = await Promise.all([
    import('./store/move.js'),
    import('./store/embedded-dump.js'),
  ]);
  if (action === 'export' && options.redis !== undefined) {
    const urls = options.redis.split(',');
    if (!urls.every((url) => URL.canParse(url) && /^rediss?:/.test(url)))
      throw new UsageError('--redis must be a URL such as redis://HOST:6379, or several separated by commas');
    await exportStore({ urls, prefix: options.prefix ?? 'gw' }, process.stdout);
    return 0;
  }
  if (action !== 'export' && action !== 'import' && action !== 'backup') {
    throw new UsageError('store needs "export", "import" or "backup"');
  }
  const path = configPath(options);
  if (path === null) throw new UsageError(`store ${action} needs --config FILE`);
  const settings = (await readConfig(path)).store;
  if (action === 'export') await exportStore(settings, process.stdout);
  else if (action === 'import') {
    const entries = await importStore(settings, process.stdin);
    process.stdout.write(`${entries} entries are in the store\n`);
  } else {
    if (!options.to) throw new UsageError('store backup needs --to FOLDER');
    if (settings.kind !== 'embedded') throw new UsageError('a backup of PostgreSQL is made with pg_dump');
    await copyEmbedded(settings.path, options.to);
  }
  return 0;
}

function version(): string {
  const file = new URL('../../package.json', import.meta.url);
  return String(Reflect.get(JSON.parse(readFileSync(file, 'utf8')), 'version'));
}

async function run(): Promise<number> {
  const { values, positionals } = readArguments();
  const [command, ...rest] = positionals;
  const output = values.help ? help : values.version ? `${version()}\n` : null;
  if (output !== null) {
    process.stdout.write(output);
    return 0;
  }
  const most =
    command === 'prices' || (command === 'key' && rest[0] !== 'new')
      ? 2
      : command === 'key' || command === 'store'
        ? 1
        : 0;
  if (rest.length > most) throw new UsageError(`"${rest[most]}" is not understood here`);
  if (command === 'start') return start(values);
  process.stdout.on('error', endWithReader);
  if (command === 'check') return check(values);
  if (command === 'key') return key(rest[0], rest[1]);
  if (command === 'store') return store(rest[0], values);
  if (command === 'prices') return prices(values, rest[0], rest[1]);
  throw new UsageError(command === undefined ? 'a command is needed' : `there is no command "${command}"`);
}

/** Ends the process when its output is no longer read, as behind `| head`. That is no error to report. */
function endWithReader(fault: NodeJS.ErrnoException): void {
  if (fault.code !== 'EPIPE')
    process.stderr.write(`what was asked for cannot be written: ${fault.message}\n`);
  process.exit(1);
}

try {
  process.exitCode = await run();
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message}\nTry: model-gateway --help\n`);
    process.exitCode = 2;
  } else if (error instanceof ConfigError) {
    const { values, positionals } = readArguments();
    const into = positionals[0] === 'prices' ? values.into : undefined;
    const file = into ?? configPath(values);
    for (const problem of error.problems) {
      const line = formatProblem(problem);
      process.stderr.write(line.startsWith(`${file} `) ? `${line}\n` : `${file}: ${line}\n`);
    }
    process.exitCode = 1;
  } else if (error instanceof Error && 'code' in error && error.code === 'EMFILE') {
    // `main.ts` says how to raise the limit.
    throw error;
  } else {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
