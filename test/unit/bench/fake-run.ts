import type { DatabaseRun, Result } from '../../bench/database-run.ts';
import { REFERENCE } from '../../bench/floor.ts';

export const RESULT: Result = {
  scenario: 'issue',
  tables: 'many',
  flows: 1_000,
  seconds: 8,
  p50: 1,
  p95: 2,
  p99: 3,
  errors: 0,
  messages: [],
  serverMs: 1.2,
  databaseMs: 0.3,
  windowsMs: [1.5],
  peakMegabytes: 150,
  strangersCores: 0,
  slowness: 1,
};

/** A run on a machine that is `slowness` times as slow as the reference. */
export function fakeRun(slowness: number, change: Partial<Result> = {}): DatabaseRun {
  const reference = { signMs: REFERENCE.signMs * slowness, verifyMs: REFERENCE.verifyMs * slowness };
  const costs = { reference, signMs: 0.02, verifyMs: 0.06, importMs: 0, generateMs: 0, agreeMs: 0, hashMs: 0 };
  return {
    database: 'postgres',
    server: 'PostgreSQL 17',
    costs,
    starts: [{ startMs: 400, idleMegabytes: 70 }],
    results: [{ ...RESULT, slowness, ...change }],
    preloaded: { sessions: 1, entries: 1 },
  };
}
