import { STATUS_CODES } from 'node:http';

/** Code and reason as a status line has them, by code. */
export const statusLines: string[] = [];
for (const [code, reason] of Object.entries(STATUS_CODES)) statusLines[Number(code)] = `${code} ${reason}`;
