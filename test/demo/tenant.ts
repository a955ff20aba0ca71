import { readFileSync } from 'node:fs';
import { AdminClient } from './admin-client.ts';
import type { DemoBackend } from './backend.ts';
import { fact, step } from './narrator.ts';

const examples = new URL('../../config/examples/demo/', import.meta.url);

export type DemoTenant = { readonly admin: AdminClient; readonly clientId: string; readonly secret: string };

export async function createTenant(address: string, root: { clientId: string; secret: string }, backend: DemoBackend): Promise<DemoTenant> {
  step('Creating the tenant "demo" from config/examples/demo');
  const rootClient = new AdminClient(address, root.clientId, root.secret);
  await rootClient.post('/tenant', example('tenant.json', backend));
  const clientId = 'demo-admin';
  const { secret } = await rootClient.get<{ secret: string }>(`/client/${clientId}/secret`);
  const admin = new AdminClient(address, clientId, secret);
  await admin.post('/issuer/config', example('issuance/config.json', backend));
  await admin.post('/issuer/credentials', example('issuance/credentials/pid.json', backend));
  await admin.post('/issuer/credentials', example('issuance/credentials/mdl.json', backend));
  await admin.post('/verifier/config', example('presentation/age-check.json', backend));
  await admin.post('/verifier/config', example('presentation/licence-check.json', backend));
  fact(
    'made',
    'a tenant with its own certification authority, two credentials ("pid", "mdl") and two questions ' + '("age-check", "licence-check")',
  );
  return { admin, clientId, secret };
}

/** Files of the example with their placeholders filled in. */
export function example(file: string, backend: DemoBackend): unknown {
  const text = readFileSync(new URL(file, examples), 'utf8');
  const values: Record<string, string> = { DEMO_BACKEND: backend.url, DEMO_API_KEY: backend.apiKey };
  return JSON.parse(text.replaceAll(/\$\{([A-Z_]+)\}/g, (_, name: string) => values[name] ?? ''));
}
