import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { delimiter, join } from 'node:path';

export interface Tool {
  readonly path: string;
  readonly version: string;
}

/** The machine of a run, and the tools that it has. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
  /** Soft limit of open files for this process and its children. */
  readonly openFiles: number;
  readonly taskset: Tool | null;
  readonly wrk: Tool | null;
  readonly nginx: Tool | null;
  readonly haproxy: Tool | null;
}

/** Daemons are in sbin directories, which not every user's PATH contains. */
function find(name: string): string | null {
  const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];
  return places.map((place) => join(place, name)).find((path) => existsSync(path)) ?? null;
}

function tool(name: string, flag: string, pattern: RegExp): Tool | null {
  const path = find(name);
  if (!path) return null;
  const { stdout, stderr } = spawnSync(path, [flag], { encoding: 'utf8' });
  return { path, version: pattern.exec(`${stdout}${stderr}`)?.[1] ?? 'unknown version' };
}

function openFiles(): number {
  const found = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
  return Number(found?.[1] ?? 1024);
}

/** Describes the machine and looks for the tools; a missing tool is null. */
export function describeMachine(): Machine {
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? 'unknown',
    cores: all.length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    openFiles: openFiles(),
    taskset: tool('taskset', '--version', /util-linux ([\d.]+)/),
    wrk: tool('wrk', '-v', /wrk (\S+)/),
    nginx: tool('nginx', '-v', /nginx\/(\S+)/),
    haproxy: tool('haproxy', '-v', /version (\S+)/),
  };
}
