import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './schema.d.ts';

type Schemas = components['schemas'];

/** Only compiled: a path continues below its first name. */
export const BELOW: Schemas['PresentationConfigurationInput']['dcql_query'] = {
  credentials: [
    {
      id: 'badge',
      format: 'dc+sd-jwt',
      meta: { vct_values: ['urn:made:badge:1'] },
      claims: [{ path: ['address', 'street', null] }, { path: ['address', 'street', 0] }],
    },
  ],
};

/** The steps of a wallet; all other calls use the generated client. */
export type Wallet = { collect(tenant: string, uri: string): Promise<void>; present(uri: string): Promise<void> };

type Service = { readonly address: string; readonly clientId: string; readonly secret: string };

/** Runs a complete issuance and verification. @returns the values that the verifier received. */
export async function wholeRun(service: Service, wallet: Wallet): Promise<{ readonly seen: string[] }> {
  const operator = await login(service.address, service.clientId, service.secret);
  const tenant: Schemas['TenantCreation'] = {
    id: 'made',
    name: 'Made',
    roles: ['clients:manage', 'issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request'],
  };
  const created = dataOf(await operator.POST('/tenant', { body: tenant }));
  const [administrator] = created.clients;
  const client = await login(service.address, administrator?.clientId ?? '', administrator?.secret ?? '');
  const session = await issue(client, wallet);
  const seen = await verify(client, wallet);
  await revoke(client, session);
  await cleanUp(client, session);
  return { seen };
}

async function login(baseUrl: string, client_id: string, client_secret: string): Promise<Client<paths>> {
  const anonymousClient = createClient<paths>({ baseUrl });
  const body = { grant_type: 'client_credentials', client_id, client_secret };
  const { access_token } = dataOf(await anonymousClient.POST('/oauth2/token', { body }));
  return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${access_token}` } });
}

/** @returns the session of the offer. */
async function issue(client: Client<paths>, wallet: Wallet): Promise<string> {
  const issuer: Schemas['IssuanceConfigurationInput'] = { display: [{ name: 'Made', locale: 'en' }] };
  dataOf(await client.POST('/issuer/config', { body: issuer }));
  const badge: Schemas['CredentialConfigurationInput'] = {
    id: 'badge',
    config: { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] },
    vct: 'urn:made:badge:1',
    claims: { name: 'Nobody', address: { street: ['x', 1, null] } },
    disclosureFrame: { _sd: ['name'] },
    statusManagement: true,
  };
  dataOf(await client.POST('/issuer/credentials', { body: badge }));
  const offer: Schemas['OfferRequest'] = {
    response_type: 'uri',
    flow: 'pre_authorized_code',
    credentialConfigurationIds: ['badge'],
    reference: 'order 17',
    credentialClaims: { badge: { type: 'inline', claims: { name: 'Ada' } } },
  };
  const createdOffer = dataOf(await client.POST('/issuer/offer', { body: offer }));
  await wallet.collect('made', createdOffer.uri);
  const sessions = dataOf(await client.GET('/session', { params: { query: { q: 'order 17', limit: 10 } } }));
  const [session] = sessions;
  if (session?.id !== createdOffer.session) throw new Error('the session is not found by its reference');
  const status: Schemas['Session']['status'] = session.status;
  if (status !== 'completed') throw new Error(`the issuance is ${status}: ${session.failure?.code}`);
  return createdOffer.session;
}

async function verify(client: Client<paths>, wallet: Wallet): Promise<string[]> {
  const { rootCertificate } = dataOf(await client.GET('/key-chain/{id}', { params: { path: { id: 'signing' } } }));
  const configuration: Schemas['PresentationConfigurationInput'] = {
    id: 'who',
    dcql_query: {
      credentials: [{ id: 'badge', format: 'dc+sd-jwt', meta: { vct_values: ['urn:made:badge:1'] }, claims: [{ path: ['name'] }] }],
    },
    trustAnchors: [{ certificate: rootCertificate ?? '' }],
  };
  dataOf(await client.POST('/verifier/config', { body: configuration }));
  const request: Schemas['PresentationRequest'] = { response_type: 'uri', requestId: 'who' };
  const createdRequest = dataOf(await client.POST('/verifier/offer', { body: request }));
  await wallet.present(createdRequest.uri);
  const session = dataOf(await client.GET('/session/{id}', { params: { path: { id: createdRequest.session } } }));
  const failed = session.report?.filter(({ result }) => result === 'failed').map(({ check }) => check) ?? [];
  if (failed.length > 0) throw new Error(`failed: ${failed.join()}`);
  return (session.credentials ?? []).flatMap(({ values, issuer }) => {
    // One credential was requested, so each is an object and no list.
    const { name } = values as { readonly name: string };
    const { subject } = issuer as { readonly subject: string };
    return [name, subject];
  });
}

async function revoke(client: Client<paths>, sessionId: string): Promise<void> {
  const body: Schemas['Revocation'] = { sessionId, status: 1 };
  dataOf(await client.POST('/session/revoke', { body }));
}

/** The types allow changing a read resource and sending it back. */
async function cleanUp(client: Client<paths>, sessionId: string): Promise<void> {
  const path = { id: 'who' };
  const update: Schemas['PresentationConfigurationUpdate'] = { lifeTime: 600, description: null };
  dataOf(await client.PATCH('/verifier/config/{id}', { params: { path }, body: update }));
  const { error } = await client.GET('/verifier/config/{id}', { params: { path: { id: 'nobody' } } });
  const code: Schemas['Problem']['code'] | undefined = error?.code;
  if (code !== 'not_found') throw new Error(`an unknown configuration is ${code}`);
  dataOf(await client.DELETE('/verifier/config/{id}', { params: { path } }));
  dataOf(await client.DELETE('/session/{id}', { params: { path: { id: sessionId } } }));
}

function dataOf<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}
