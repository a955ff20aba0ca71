import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AdminClient } from '../demo/admin-client.ts';
import { freePort, startProcess } from '../demo/process.ts';

export type JudgedService = {
  readonly address: string;
  readonly root: AdminClient;
  stop(): Promise<void>;
};

/** One that is judged where it runs; its tenants of the judgement are removed afterwards. */
export function givenService(address: string, clientId: string, secret: string): JudgedService {
  return { address, root: new AdminClient(address, clientId, secret), stop: async () => undefined };
}

/** One on its embedded defaults, with nothing in it. Tools ask often. */
export async function ownService(): Promise<JudgedService> {
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
    async stop() {
      await service.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
