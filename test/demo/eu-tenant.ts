import { AdminClient } from './admin-client.ts';
import type { Authorities } from './authorities.ts';
import type { DemoBackend } from './backend.ts';
import { detail, fact, step } from './narrator.ts';
import { type DemoTenant, example } from './tenant.ts';

/** Redirect URI of the browser. */
export const DONE = 'https://shop.example/done';

/** One use for each copy, two copies at a time. */
const REUSE = { id: 'arf_annex_ii', options: [{ details: ['once_only'], batch_size: 2, reissue_trigger_unused: 1 }] };

/** The tenant of the example under the profile `eu`, in the order that docs/reference/profiles.md gives. */
export async function createEuropeanTenant(
  address: string,
  root: { readonly clientId: string; readonly secret: string },
  backend: DemoBackend,
  authorities: Authorities,
): Promise<DemoTenant> {
  step('2. The tenant "demo" takes on the profile `eu`');
  const rootClient = new AdminClient(address, root.clientId, root.secret);
  const tenant = example('tenant.json', backend) as { roles: readonly string[] };
  const roles = [...tenant.roles, 'registrar:manage'];
  await rootClient.post('/tenant', { ...tenant, roles, profile: 'eu', country: 'GB' });
  const clientId = 'demo-admin';
  const { secret } = await rootClient.get<{ secret: string }>(`/client/${clientId}/secret`);
  const admin = new AdminClient(address, clientId, secret);

  await admin.post('/registrar/config', authorities.registrar.login());
  detail('POST /registrar/config', 'the login at the registrar');
  await admin.post('/registrar/access-certificate', { keyChainId: 'access' });
  detail('POST /registrar/access-certificate', 'requests and metadata are signed under a public authority');
  const issuer = example('issuance/config.json', backend) as object;
  await admin.post('/issuer/config', { ...issuer, batchSize: 2, ...authorities.issuer() });
  detail('POST /issuer/config', 'wallets of listed providers alone; a registration certificate in the metadata');
  for (const file of ['pid', 'mdl']) {
    const body = example(`issuance/credentials/${file}.json`, backend) as object;
    await admin.post('/issuer/credentials', { ...body, credentialReusePolicy: REUSE });
  }
  detail('POST /issuer/credentials', 'two types, which the registrar registers, and how often a copy is shown');
  for (const file of ['age-check', 'licence-check']) {
    const body = example(`presentation/${file}.json`, backend) as object;
    await admin.post('/verifier/config', { ...body, registrationCert: { body: {} }, redirectUri: DONE });
  }
  detail('POST /verifier/config', 'two questions, each with a registration certificate for what it asks');
  fact('registered', `${authorities.registrar.issued.size} certificates`);
  return { admin, clientId, secret };
}
