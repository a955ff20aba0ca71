import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type BackendCall = { readonly path: string; readonly body: Record<string, unknown> };

export type DemoBackend = { readonly url: string; readonly apiKey: string; readonly calls: readonly BackendCall[]; close(): Promise<void> };

/** The data that the ministry holds about its citizen. */
export const CITIZEN = {
  given_name: 'Ada',
  family_name: 'Lovelace',
  birthdate: '1990-12-10',
  age_over_18: true,
  address: { street_address: '12 St James Square', locality: 'London', country: 'GB' },
  nationalities: ['GB'],
};

/** The customer's backend: answers the claims webhook and takes in what was presented. */
export async function startBackend(apiKey: string): Promise<DemoBackend> {
  const calls: BackendCall[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.headers['x-api-key'] !== apiKey) {
        response.writeHead(401).end();
        return;
      }
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
      calls.push({ path: request.url ?? '', body });
      response.writeHead(200, { 'Content-Type': 'application/json' });
      const answer = request.url === '/claims' ? { [String(body['credential_configuration_id'])]: CITIZEN } : {};
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, apiKey, calls, close: () => new Promise((resolve) => server.close(() => resolve())) };
}
