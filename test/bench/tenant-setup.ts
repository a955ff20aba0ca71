import type { WalletProvider } from '../support/wallet-provider.ts';
import { type Answer, HttpClient, json, text } from './http-client.ts';
import { ROOT_CLIENT } from './service-process.ts';
import { ASKED, BATCH, CLAIMS, DISCLOSURE_FRAME, type World } from './world.ts';

const TENANT = 'bench';
const ROLES = [
  'clients:manage',
  'issuance:manage',
  'issuance:offer',
  'presentation:manage',
  'presentation:request',
];
const PLAIN = { id: 'pid', vct: 'urn:vidimus:bench:pid:1' } as const;
const STATUS = { id: 'pid-status', vct: 'urn:vidimus:bench:pid-status:1' } as const;
const MDOC = 'pid-mdoc';
const REQUEST = 'four-values';
/** The query's id is the key of the `vp_token`. */
const QUERY = 'pid';

/** Makes the tenant, its configurations and a token over the administrative interface. */
export async function setUpTenant(origin: string, provider: WalletProvider): Promise<World> {
  const http = new HttpClient(origin, 1);
  try {
    const root = await accessToken(http, ROOT_CLIENT.id, ROOT_CLIENT.secret);
    const tenant = json(
      'POST /tenant',
      await http.postJson(
        '/tenant',
        {
          id: TENANT,
          name: 'Bench',
          roles: ROLES,
          statusListConfig: { capacity: 100_000, immediateUpdate: true },
        },
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
    await post('/issuer/credentials', mdocConfiguration());
    await post('/verifier/config', presentationConfiguration());
    return {
      origin,
      tenantId: TENANT,
      token,
      plainId: PLAIN.id,
      statusId: STATUS.id,
      requestId: REQUEST,
      mdocId: MDOC,
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

async function accessToken(http: HttpClient, clientId: string, secret: string): Promise<string> {
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

function mdocConfiguration() {
  return {
    id: MDOC,
    config: {
      format: 'mso_mdoc',
      scope: MDOC,
      docType: 'eu.europa.ec.eudi.pid.1',
      display: [{ name: 'Person Identification Data', locale: 'en' }],
    },
    lifeTime: 31_536_000,
  };
}

function presentationConfiguration() {
  return {
    id: REQUEST,
    dcql_query: {
      credentials: [
        {
          id: QUERY,
          format: 'dc+sd-jwt',
          meta: { vct_values: [STATUS.vct] },
          claims: ASKED.map((name) => ({ path: [name] })),
        },
      ],
    },
    trustAnchors: [{ keyChainId: 'signing' }],
  };
}
