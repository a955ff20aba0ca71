import type { WalletProvider } from '../support/wallet-provider.ts';
import { type Answer, HttpClient, json, text } from './http-client.ts';
import { ROOT_CLIENT } from './service-process.ts';
import {
  ASKED,
  type Asking,
  BATCH,
  CLAIMS,
  DISCLOSURE_FRAME,
  DOC_TYPE,
  LIST_CAPACITY,
  type StatusList,
  WALLETS,
  type World,
} from './world.ts';

const TENANT = 'bench';
const ROLES = ['clients:manage', 'issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request'];
const PLAIN = { id: 'pid', vct: 'urn:vidimus:bench:pid:1' } as const;
const STATUS = { id: 'pid-status', vct: 'urn:vidimus:bench:pid-status:1' } as const;
const MDOC = 'pid-mdoc';
const MDOC_STATUS = 'pid-mdoc-status';

const ASKING: World['asking'] = {
  verify: { requestId: 'four-values', queries: [{ id: 'pid', format: 'dc+sd-jwt' }] },
  'verify-mdoc': { requestId: 'four-elements', queries: [{ id: 'pid', format: 'mso_mdoc' }] },
  'verify-20': {
    requestId: 'twenty-credentials',
    queries: Array.from({ length: 20 }, (_, index) => ({ id: `pid-${index}`, format: index % 2 === 0 ? 'dc+sd-jwt' : 'mso_mdoc' })),
  },
};
const SETS = 5;

/** Makes a tenant, its configurations and a token over the administrative interface. */
export async function setUpTenant(
  origin: string,
  provider: WalletProvider,
  { id = TENANT, listCapacity = LIST_CAPACITY }: { readonly id?: string; readonly listCapacity?: number } = {},
): Promise<World> {
  const http = new HttpClient(origin, 1);
  try {
    const root = await accessToken(http, ROOT_CLIENT.id, ROOT_CLIENT.secret);
    const tenant = json(
      'POST /tenant',
      await http.postJson(
        '/tenant',
        { id, name: 'Bench', roles: ROLES, statusListConfig: { capacity: listCapacity, immediateUpdate: true } },
        { authorization: `Bearer ${root}` },
      ),
      201,
    );
    const [client] = (tenant['clients'] ?? []) as Record<string, unknown>[];
    const clientId = text('POST /tenant', client ?? {}, 'clientId');
    const token = await accessToken(http, clientId, text('POST /tenant', client ?? {}, 'secret'));
    const post = async (path: string, body: unknown) => {
      const answer: Answer = await http.postJson(path, body, { authorization: `Bearer ${token}` });
      json(`POST ${path}`, answer, 201);
    };
    await post('/issuer/config', {
      display: [{ name: 'Bench', locale: 'en' }],
      dPopRequired: true,
      batchSize: BATCH,
      ...provider.configuration(),
      walletAttestationRequired: false,
    });
    await post('/issuer/credentials', credentialConfiguration(PLAIN, false));
    await post('/issuer/credentials', credentialConfiguration(STATUS, true));
    await post('/issuer/credentials', mdocConfiguration(MDOC, false));
    await post('/issuer/credentials', mdocConfiguration(MDOC_STATUS, true));
    for (const asking of Object.values(ASKING)) {
      await post('/verifier/config', presentationConfiguration(asking));
    }
    return {
      origin,
      tenantId: id,
      wallets: WALLETS,
      token,
      plainId: PLAIN.id,
      mdocId: MDOC,
      statusIds: { 'dc+sd-jwt': STATUS.id, mso_mdoc: MDOC_STATUS },
      asking: ASKING,
      provider: {
        clientId: provider.clientId,
        certificate: provider.signer.certificate,
        privateJwk: provider.signer.privateKey.export({ format: 'jwk' }),
      },
    };
  } finally {
    await http.close();
  }
}

/** Creates a status list that is used once the others are full. */
export async function addStatusList({ origin, token }: World): Promise<StatusList> {
  const http = new HttpClient(origin, 1);
  try {
    const answer = await http.postJson('/status-lists', {}, { authorization: `Bearer ${token}` });
    const listResponse = json('POST /status-lists', answer, 201);
    return { id: text('POST /status-lists', listResponse, 'id'), uri: text('POST /status-lists', listResponse, 'uri') };
  } finally {
    await http.close();
  }
}

/** Makes so many of something, several at once. */
async function inParallel(count: number, createOne: (number: number) => Promise<void>): Promise<void> {
  let startedCount = 0;
  const worker = async () => {
    while (startedCount < count) await createOne(++startedCount);
  };
  await Promise.all(Array.from({ length: WALLETS }, worker));
}

/** Tenants without clients. */
export async function addTenants(origin: string, count: number): Promise<void> {
  const http = new HttpClient(origin, WALLETS);
  const authorization = `Bearer ${await accessToken(http, ROOT_CLIENT.id, ROOT_CLIENT.secret)}`;
  await inParallel(count, async (number) => {
    const body = { id: `tenant-${number}`, name: `Tenant ${number}` };
    json('POST /tenant', await http.postJson('/tenant', body, { authorization }), 201);
  });
  await http.close();
}

/** Key chains of the tenant that nothing is signed with. */
export async function addKeyChains({ origin, token }: World, count: number): Promise<void> {
  const http = new HttpClient(origin, WALLETS);
  await inParallel(count, async (number) => {
    const body = { id: `spare-${number}`, usageType: 'signing' };
    const answer = await http.postJson('/key-chain', body, { authorization: `Bearer ${token}` });
    json('POST /key-chain', answer, 201);
  });
  await http.close();
}

export async function accessToken(http: HttpClient, clientId: string, secret: string): Promise<string> {
  const body = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  return text('token', json('token', await http.postJson('/oauth2/token', body), 200), 'access_token');
}

function credentialConfiguration(kind: { readonly id: string; readonly vct: string }, status: boolean) {
  return {
    id: kind.id,
    config: {
      format: 'dc+sd-jwt',
      scope: kind.id,
      display: [{ name: 'Person Identification Data', locale: 'en' }],
      claims: Object.keys(CLAIMS).map((name) => ({ path: [name] })),
    },
    vct: kind.vct,
    disclosureFrame: DISCLOSURE_FRAME,
    keyBinding: true,
    statusManagement: status,
    lifeTime: 31_536_000,
  };
}

function mdocConfiguration(id: string, status: boolean) {
  return {
    id,
    config: { format: 'mso_mdoc', scope: id, docType: DOC_TYPE, display: [{ name: 'Person Identification Data', locale: 'en' }] },
    statusManagement: status,
    lifeTime: 31_536_000,
  };
}

/** Several queries are grouped into sets, each of which has to be answered whole. */
function presentationConfiguration({ requestId, queries }: Asking) {
  const size = queries.length / SETS;
  const sets = Array.from({ length: SETS }, (_, set) => queries.slice(set * size, (set + 1) * size));
  return {
    id: requestId,
    dcql_query: {
      credentials: queries.map(makeQuery),
      ...(queries.length > 1 && { credential_sets: sets.map((set) => ({ options: [set.map(({ id }) => id)] })) }),
    },
    trustAnchors: [{ keyChainId: 'signing' }],
  };
}

function makeQuery({ id, format }: Asking['queries'][number]) {
  const names = ASKED[format];
  return format === 'mso_mdoc'
    ? { id, format, meta: { doctype_value: DOC_TYPE }, claims: names.map((name) => ({ path: [DOC_TYPE, name] })) }
    : { id, format, meta: { vct_values: [STATUS.vct] }, claims: names.map((name) => ({ path: [name] })) };
}
