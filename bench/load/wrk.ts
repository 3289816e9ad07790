import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callerAt } from '../callers.js';
import type { Tool } from '../machine.js';
import { startProcess } from '../proc.js';
import { describeErrors, type LoadClient, type LoadPlan, type LoadResult } from './load.js';

/**
 * With one caller, the request is static, and wrk sends it without entering Lua. `done` prints what `--latency` would
 * print, in exact microseconds and with all error counts.
 */
const script = `
function init(args)
  local file = io.open(args[1], "rb")
  local body = file:read("*a")
  file:close()
  local names = io.open(args[2], "rb")
  local callers = {}
  for key, model in names:read("*a"):gmatch("([^,=]+)=([^,]+)") do
    callers[#callers + 1] = {key, model}
  end
  names:close()
  wrk.method = "POST"
  wrk.headers["content-type"] = "application/json"
  wrk.headers["authorization"] = "Bearer " .. callers[1][1]
  for name, value in args[4]:gmatch("([^,=]+)=([^,]+)") do
    wrk.headers[name] = value
  end
  wrk.body = body
  if #callers > 1 then
    local ready = {}
    for index, caller in ipairs(callers) do
      local headers = {}
      for name, value in pairs(wrk.headers) do headers[name] = value end
      headers["authorization"] = "Bearer " .. caller[1]
      ready[index] = wrk.format("POST", nil, headers, (body:gsub(args[3]:gsub("%-", "%%-"), caller[2], 1)))
    end
    -- Not from the first one again in each run: those have called in the run before.
    math.randomseed(os.time())
    local at = math.random(#ready)
    request = function()
      at = at % #ready + 1
      return ready[at]
    end
  end
  io.write("READY\\n")
  io.flush()
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\\nRESULT {"requests":%d,"microseconds":%d,"p50":%f,"p99":%f,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
`;

interface Summary {
  readonly requests: number;
  readonly microseconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly connect: number;
  readonly read: number;
  readonly write: number;
  readonly status: number;
  readonly timeout: number;
}

/** wrk with one thread. */
export function wrk(tool: Tool): LoadClient {
  return {
    name: `wrk ${tool.version}`,
    async start(plan) {
      const scriptFile = join(plan.directory, 'wrk.lua');
      writeFileSync(scriptFile, script);
      // Passed as a file, since the names of thousands of callers exceed the system's limit for arguments.
      const callersFile = join(plan.directory, 'wrk-callers');
      writeFileSync(callersFile, plan.callers.map(({ key, model }) => `${key}=${model}`).join(','));
      const headers = Object.entries(plan.headers)
        .map(([name, value]) => `${name}=${value}`)
        .join(',');
      const process = await startProcess({
        name: 'wrk',
        command: tool.path,
        args: [
          ...flags(plan),
          '-s',
          scriptFile,
          url(plan),
          '--',
          plan.bodyFile,
          callersFile,
          callerAt(0).model,
          headers,
        ],
        core: plan.core,
      });
      // Writing the requests of thousands of callers takes wrk a second, which is not measured.
      while ((await process.line()) !== 'READY');
      return { process, result: read(process.line) };
    },
  };
}

const flags = (plan: LoadPlan): string[] => [
  '-t1',
  `-c${plan.connections}`,
  `-d${plan.seconds}s`,
  '--timeout',
  '10s',
];

const url = (plan: LoadPlan): string =>
  `${plan.secure ? 'https' : 'http'}://127.0.0.1:${plan.port}${plan.path}`;

async function read(line: () => Promise<string>): Promise<LoadResult> {
  for (;;) {
    const text = await line();
    if (!text.startsWith('RESULT ')) continue;
    const summary = JSON.parse(text.slice('RESULT '.length)) as Summary;
    return {
      requestsPerSecond: summary.requests / (summary.microseconds / 1e6),
      p50Us: summary.p50,
      p99Us: summary.p99,
      errors: describeErrors({
        'answers that are not 2xx or 3xx': summary.status,
        'connect errors': summary.connect,
        'read errors': summary.read,
        'write errors': summary.write,
        timeouts: summary.timeout,
      }),
    };
  }
}
