import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { isQuick } from '../../support/seed.js';

const mostOutput = 64 * 1024 * 1024;

/** The reason to skip a test that needs these programs, or false in a full run when all are on the PATH. */
export function without(...programs: readonly string[]): string | false {
  if (isQuick) return 'the quick run starts no other programs';
  const missing = programs.filter((program) => pathOf(program) === null);
  return missing.length > 0 && `${missing.join(' and ')} not on the PATH`;
}

/** What a program writes when it reads the input. */
export function run(
  program: string,
  args: readonly string[],
  input: Buffer,
): { status: number | null; output: Buffer; messages: string } {
  const { status, stdout, stderr } = spawnSync(program, args, { input, maxBuffer: mostOutput });
  return { status, output: stdout, messages: stderr.toString() };
}

/** Decodes all of a file with ffmpeg; gives what it says about errors, which is nothing for a sound one. */
export function complaints(file: Buffer): string {
  const { status, messages } = run('ffmpeg', ['-v', 'error', '-i', 'pipe:0', '-f', 'null', '-'], file);
  return status === 0 ? messages : `ended with ${status}: ${messages}`;
}

/**
 * What ffprobe tells of the first stream and the file, by names in lower case; with `-v warning`, so anything odd is a
 * message. It reads from the disk, as it tells no length of a pipe.
 */
export function probe(file: Buffer): { fields: Map<string, string>; messages: string } {
  const folder = mkdtempSync(join(tmpdir(), 'probe-'));
  const path = join(folder, 'file');
  writeFileSync(path, file);
  const args = ['-v', 'warning', '-count_frames', '-show_streams', '-show_format', '-of', 'default=nk=0'];
  const { output, messages } = run('ffprobe', [...args, path], Buffer.alloc(0));
  rmSync(folder, { recursive: true });
  const fields = new Map<string, string>();
  for (const line of output.toString().split('\n')) {
    const [, name = '', value = ''] = /^([^=]+)=(.*)$/.exec(line) ?? [];
    if (!fields.has(name.toLowerCase())) {
      fields.set(name.toLowerCase(), value);
    }
  }
  return { fields, messages };
}

/** The path of a program that is on the PATH; null where none is. */
export function pathOf(program: string): string | null {
  const paths = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, program));
  return paths.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
