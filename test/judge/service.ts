import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AdminClient } from '../demo/admin-client.ts';
import { freePort, startProcess } from '../demo/process.ts';
import { UsageFault } from './options.ts';
import { errorReason, withTimeout } from './verdict.ts';

export type ServiceUnderTest = {
  readonly address: string;
  readonly root: AdminClient;
  /** Tenants that were made, or begun, and are not removed yet. */
  readonly tenants: Set<string>;
  stop(): Promise<void>;
};

const ANSWER_SECONDS = 10;

/**
 * A running service under test; `stop` removes remaining tenants.
 * @throws UsageFault when it does not answer, or rejects the root credentials.
 */
export async function useRunningService(address: string, clientId: string, secret: string): Promise<ServiceUnderTest> {
  const root = new AdminClient(address, clientId, secret);
  try {
    await withTimeout(ANSWER_SECONDS, 'its answer', root.get('/tenant'));
  } catch (error) {
    throw new UsageFault(`--service: ${address} ${findLoginProblem(error)}`);
  }
  const tenants = new Set<string>();
  return {
    ...{ address, root, tenants },
    async stop() {
      for (const id of tenants) {
        try {
          await withTimeout(ANSWER_SECONDS, 'its answer', root.delete(`/tenant/${id}`));
        } catch (error) {
          // A set-up may have failed before there was one.
          if (!/ answered 404: /.test(errorReason(error))) console.error(`the tenant ${id} is still there: ${errorReason(error)}`);
        }
      }
    },
  };
}

function findLoginProblem(error: unknown): string {
  const reason = errorReason(error);
  if (/^no access token .*: 40[01] .*invalid_client/.test(reason)) return `refuses the credentials: ${reason}`;
  if (/ answered 403: /.test(reason)) return `takes them for another client than root: ${reason}`;
  if (/^(fetch failed|its answer)/.test(reason)) return `cannot be reached: ${reason}`;
  return `does not answer as Vidimus does: ${reason}`;
}

/** One on its embedded defaults, with nothing in it. Tools ask often. */
export async function startService(): Promise<ServiceUnderTest> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-judge-'));
  const port = await freePort(createServer);
  const address = `http://localhost:${port}`;
  const environment = {
    ...{ PORT: String(port), DATA_FOLDER: folder, OUTBOUND_ALLOW: '127.0.0.1/32', LOG_LEVEL: 'warn' },
    ...{ RATE_LIMIT_TOKEN: '1000000', RATE_LIMIT_OFFER: '1000000', RATE_LIMIT_NONCE: '1000000' },
  };
  const service = await startProcess({ address, environment });
  const { clientId, secret } = service.root;
  return {
    address,
    root: new AdminClient(address, clientId, secret),
    tenants: new Set(),
    async stop() {
      await service.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
