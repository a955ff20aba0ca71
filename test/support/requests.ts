import type { Route } from '../../adapters/http/route.ts';
import { Store } from '../../application/ports/store.ts';
import { updateOutcome } from '../../domain/sessions/session-change.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import {
  addClient,
  addPendingSigner,
  claimsWebhookOffer,
  createDeferred,
  createResource,
  credentialBody,
  NEXT_FINGERPRINT,
  offerBody,
  type PopulatedTenant,
  presentationBody,
  type TenantIds,
  trustListBody,
} from './populated.ts';
import { newKey } from './raw-wallet.ts';
import { sharedRegistrar } from './registrar.ts';

export type Request = { readonly params?: Readonly<Record<string, string>>; readonly json?: unknown };

type Recipe = {
  /** A valid request for these resources; `fresh` is an unused id. */
  readonly request: (ids: TenantIds, fresh: string, role?: string) => Request;
  /** Creates the resource that the call consumes. */
  readonly prepare?: (world: PopulatedTenant, fresh: string, role?: string) => Promise<Partial<TenantIds>>;
};

/** Each role sees the sessions of its kind. */
const session = (ids: TenantIds, role = 'issuance:manage') => ({ id: role.startsWith('presentation') ? ids.verification : ids.issuance });

const freshClient: Recipe['prepare'] = async (world, fresh, role) => {
  if (role === 'tenants:manage') {
    const { service } = world;
    const json = { id: fresh, name: 'Fresh', roles: ['clients:manage'] };
    await createResource(service, await service.rootToken(), '/tenant', json);
    return { client: `${fresh}-admin` };
  }
  await addClient(world, fresh, { roles: ['clients:manage'] });
  return { client: fresh };
};

const freshSession: Recipe['prepare'] = async ({ service, token, ids }, _fresh, role = '') => {
  const verification = { response_type: 'uri', requestId: ids.presentation };
  return role.startsWith('presentation')
    ? { verification: (await createResource(service, token, '/verifier/offer', verification)).session }
    : { issuance: (await createResource(service, token, '/issuer/offer', offerBody(ids.credential))).session };
};

/** The webhook whose failure the session below records. */
const DELIVERY = 'a-delivery-that-failed';

const withFailedDelivery: Recipe['prepare'] = async (world, fresh, role = '') => {
  const { service, ids } = world;
  const notifyWebhook = { url: 'http://127.0.0.1:9/nobody-listens' };
  const offer = { ...offerBody(ids.credential), notifyWebhook };
  const made: Partial<TenantIds> = role.startsWith('presentation')
    ? ((await freshSession?.(world, fresh, role)) ?? {})
    : { issuance: (await createResource(service, world.token, '/issuer/offer', offer)).session };
  const id = (made.verification ?? made.issuance ?? '') as SessionId;
  const store = service.service.container.get(Store);
  const tenantId = ids.tenant as TenantId;
  const session = (await store.read(tenantId).session(id))?.session;
  if (session === undefined) throw new Error('the session is not there');
  const event = { id: 'x', event: 'credential_accepted', credentialConfigurationId: ids.credential };
  const delivery = {
    id: DELIVERY,
    webhook: made.verification === undefined ? 'notification' : 'presentation',
    at: new Date().toISOString(),
    result: 'failed',
    told: made.verification === undefined ? { notification: event } : { credentials: [] },
  } as const;
  const change = { session: updateOutcome(session, { deliveries: [delivery] }) };
  await store.commit(tenantId, change, new Date());
  return made;
};

const freshDeferred: Recipe['prepare'] = async ({ service, token, ids }) => {
  const { session } = await createResource(service, token, '/issuer/offer', offerBody(ids.credential));
  return { deferred: await createDeferred(service, ids.tenant, session, ids.credential) };
};

const made =
  (kind: keyof TenantIds, path: string, body: (id: string, ids: TenantIds, role?: string) => object): NonNullable<Recipe['prepare']> =>
  async ({ service, token, ids }, fresh, role) => {
    await createResource(service, token, path, body(fresh, ids, role));
    return { [kind]: fresh };
  };

/** A role for presentations may only manage access keys. */
const keyUsageOf = (role?: string) => (role === 'presentation:manage' ? 'access' : 'signing');

/** An unused key chain. */
const ownKeyChain = made('keyChain', '/key-chain', (id, _, role) => ({ id, usageType: keyUsageOf(role) }));
/** A key chain that the role may change. */
const keyChainOf = (ids: TenantIds, role?: string) =>
  role === 'presentation:manage' ? 'access' : role === 'issuance:manage' ? 'signing' : ids.keyChain;
const IMPORTED = newKey().privateKey.export({ format: 'jwk' });

const registrar = await sharedRegistrar();

/** Creates the registrar login, whatever calls preceded. */
const withRegistrarLogin: Recipe['prepare'] = async ({ service, token }) => {
  await createResource(service, token, '/registrar/config', registrar.login());
  return {};
};

const emptyRequest = { request: () => ({}) };
const client = (ids: TenantIds) => ({ params: { id: ids.client } });
const keyChain = (ids: TenantIds) => ({ params: { id: ids.keyChain } });
const credential = (ids: TenantIds) => ({ params: { id: ids.credential } });
const presentation = (ids: TenantIds) => ({ params: { id: ids.presentation } });
const trustList = (ids: TenantIds) => ({ params: { id: ids.trustList } });
const statusList = (ids: TenantIds) => ({ params: { listId: ids.statusList } });
const tenant = (ids: TenantIds) => ({ params: { id: ids.tenant } });

/** Recipes for every route that needs a role. A missing route fails the matrix tests. */
const RECIPES: Readonly<Record<string, Recipe>> = {
  'GET /console/identity': emptyRequest,
  'GET /audit-log': emptyRequest,
  'GET /audit-log/verification': emptyRequest,
  'GET /settings': emptyRequest,
  'GET /trust/forecast': emptyRequest,
  'GET /trust/lists': emptyRequest,
  'POST /trust/lists/:id/confirm-signer': {
    request: (ids) => ({ params: { id: ids.followedList }, json: { fingerprint: NEXT_FINGERPRINT } }),
    prepare: async ({ service, token, ids: { tenant } }, name, role = '') => ({
      followedList: await addPendingSigner(service, token, { tenant, name, role }),
    }),
  },
  'GET /cache/stats': emptyRequest,
  'DELETE /cache': emptyRequest,
  'DELETE /cache/trust-list': emptyRequest,
  'DELETE /cache/status-list': emptyRequest,
  'GET /tenant': emptyRequest,
  'GET /tenant-removal': emptyRequest,
  'GET /tenant/:id': { request: tenant },
  'POST /tenant': { request: (_, fresh) => ({ json: { id: fresh, name: 'Fresh' } }) },
  'PATCH /tenant/:id': { request: (ids) => ({ ...tenant(ids), json: { description: 'Changed' } }) },
  'DELETE /tenant/:id': {
    request: tenant,
    async prepare({ service }, fresh) {
      await createResource(service, await service.rootToken(), '/tenant', { id: fresh, name: 'Fresh' });
      return { tenant: fresh };
    },
  },
  'GET /client': emptyRequest,
  'GET /client/:id': { request: client },
  'POST /client': { request: (_, fresh) => ({ json: { clientId: fresh, roles: ['clients:manage'] } }) },
  'PATCH /client/:id': {
    request: (ids, _, role) => ({ ...client(ids), json: { roles: [role === undefined ? 'presentation:request' : 'clients:manage'] } }),
    prepare: freshClient,
  },
  'DELETE /client/:id': { request: client, prepare: freshClient },
  'GET /client/:id/secret': { request: client, prepare: freshClient },
  'POST /client/:id/rotate-secret': { request: client, prepare: freshClient },
  'GET /key-chain': emptyRequest,
  'GET /key-chain/providers': emptyRequest,
  'GET /key-chain/:id': { request: keyChain },
  'POST /key-chain': { request: (_, fresh, role) => ({ json: { id: fresh, usageType: keyUsageOf(role) } }) },
  'PATCH /key-chain/:id': { request: (ids, _, role) => ({ params: { id: keyChainOf(ids, role) }, json: { description: 'Changed' } }) },
  'DELETE /key-chain/:id': { request: keyChain, prepare: ownKeyChain },
  'POST /key-chain/import': { request: (_, fresh, role) => ({ json: { id: fresh, usageType: keyUsageOf(role), key: IMPORTED } }) },
  'POST /key-chain/:id/rotate': { request: keyChain, prepare: ownKeyChain },
  'POST /key-chain/:id/csr': { request: (ids, _, role) => ({ params: { id: keyChainOf(ids, role) }, json: { subjectName: 'Acme' } }) },
  'GET /key': emptyRequest,
  'GET /key/:id': { request: keyChain },
  'POST /key': { request: (_, fresh) => ({ json: { id: fresh, key: IMPORTED } }) },
  'DELETE /key/:id': { request: keyChain, prepare: ownKeyChain },
  'GET /certs': emptyRequest,
  'PATCH /certs/:certId': { request: (ids, _, role) => ({ params: { certId: keyChainOf(ids, role) }, json: { description: 'Changed' } }) },
  'DELETE /certs/:certId': { request: (ids) => ({ params: { certId: ids.keyChain } }), prepare: ownKeyChain },
  'POST /certs/:certId/csr': { request: (ids, _, role) => ({ params: { certId: keyChainOf(ids, role) }, json: { subjectName: 'Acme' } }) },
  'GET /certs/:certId': { request: (ids) => ({ params: { certId: ids.keyChain } }) },
  'POST /certs': { request: (ids, id, role) => ({ json: { id, keyId: keyChainOf(ids, role), certUsageTypes: [keyUsageOf(role)] } }) },
  'GET /session-config': emptyRequest,
  'PUT /session-config': { request: () => ({ json: { ttlSeconds: 86_400 } }) },
  'DELETE /session-config': emptyRequest,
  'GET /status-lists': emptyRequest,
  'GET /status-lists/:listId': { request: statusList },
  'POST /status-lists': { request: () => ({ json: { capacity: 1000 } }) },
  'PATCH /status-lists/:listId': { request: (ids) => ({ ...statusList(ids), json: { credentialConfigurationId: null } }) },
  'DELETE /status-lists/:listId': {
    request: statusList,
    async prepare({ service, token }) {
      return { statusList: (await createResource(service, token, '/status-lists', {})).id };
    },
  },
  'GET /status-list-config': emptyRequest,
  'PUT /status-list-config': { request: () => ({ json: { ttl: 900 } }) },
  'GET /issuer/config': emptyRequest,
  'POST /issuer/config': { request: (ids) => ({ json: { display: [{ name: 'Issuer', locale: 'en' }], signingKeyId: ids.keyChain } }) },
  'GET /issuer/credentials': emptyRequest,
  'GET /issuer/credentials/:id': { request: credential },
  'POST /issuer/credentials': { request: (ids, fresh) => ({ json: credentialBody(fresh, ids.keyChain) }) },
  'PATCH /issuer/credentials/:id': { request: (ids) => ({ ...credential(ids), json: { description: 'Changed' } }) },
  'DELETE /issuer/credentials/:id': {
    request: credential,
    prepare: made('credential', '/issuer/credentials', (id, ids) => credentialBody(id, ids.keyChain)),
  },
  'POST /issuer/offer': { request: (ids) => ({ json: claimsWebhookOffer(ids.credential) }) },
  'GET /issuer/deferred': emptyRequest,
  'GET /issuer/deferred/:transactionId': { request: (ids) => ({ params: { transactionId: ids.deferred } }) },
  'POST /issuer/deferred/:transactionId/complete': {
    request: (ids) => ({ params: { transactionId: ids.deferred }, json: { credential: 'ready.made.one~' } }),
    prepare: freshDeferred,
  },
  'POST /issuer/deferred/:transactionId/fail': {
    request: (ids) => ({ params: { transactionId: ids.deferred }, json: { errorMessage: 'no such person' } }),
    prepare: freshDeferred,
  },
  'GET /verifier/config': emptyRequest,
  'GET /verifier/config/:id': { request: presentation },
  'POST /verifier/config': { request: (ids, fresh) => ({ json: presentationBody(fresh, ids.keyChain) }) },
  'PATCH /verifier/config/:id': { request: (ids) => ({ ...presentation(ids), json: { lifeTime: 600 } }) },
  'DELETE /verifier/config/:id': {
    request: presentation,
    prepare: made('presentation', '/verifier/config', (id, ids) => presentationBody(id, ids.keyChain)),
  },
  'POST /verifier/config/:id/try': { request: (ids) => ({ ...presentation(ids), json: { presentation: 'e30.e30.c2ln~' } }) },
  'POST /verifier/offer': { request: (ids) => ({ json: { response_type: 'uri', requestId: ids.presentation } }) },
  'GET /trust-list': emptyRequest,
  'GET /trust-list/:id': { request: trustList },
  'GET /trust-list/:id/export': { request: trustList },
  'GET /trust-list/:id/versions': { request: trustList },
  'GET /trust-list/:id/versions/:versionId': { request: (ids) => ({ params: { id: ids.trustList, versionId: ids.trustListVersion } }) },
  'POST /trust-list': { request: (ids, fresh) => ({ json: trustListBody(fresh, ids.keyChain) }) },
  'PUT /trust-list/:id': { request: (ids) => ({ ...trustList(ids), json: { entities: [] } }) },
  'PATCH /trust-list/:id': { request: (ids) => ({ ...trustList(ids), json: { description: 'Changed' } }) },
  'DELETE /trust-list/:id': { request: trustList, prepare: made('trustList', '/trust-list', (id, ids) => trustListBody(id, ids.keyChain)) },
  'GET /session': emptyRequest,
  'GET /session/rates': emptyRequest,
  'GET /session/:id': { request: (ids, _, role) => ({ params: session(ids, role) }) },
  'GET /session/:id/events': { request: (ids, _, role) => ({ params: session(ids, role) }) },
  'DELETE /session/:id': { request: (ids, _, role) => ({ params: session(ids, role) }), prepare: freshSession },
  'POST /session/:id/show': { request: (ids, _, role) => ({ params: session(ids, role) }) },
  'POST /session/:id/cancel': { request: (ids, _, role) => ({ params: session(ids, role) }), prepare: freshSession },
  'POST /session/:id/deliveries/:deliveryId/retry': {
    request: (ids, _, role) => ({ params: { ...session(ids, role), deliveryId: DELIVERY } }),
    prepare: withFailedDelivery,
  },
  'GET /registrar/config': { ...emptyRequest, prepare: withRegistrarLogin },
  'POST /registrar/config': { request: () => ({ json: registrar.login() }) },
  'PATCH /registrar/config': { request: () => ({ json: { registrationCertificateDefaults: null } }), prepare: withRegistrarLogin },
  'DELETE /registrar/config': { ...emptyRequest, prepare: withRegistrarLogin },
  'POST /registrar/access-certificate': {
    request: (ids) => ({ json: { keyChainId: ids.keyChain } }),
    async prepare(world, fresh) {
      await withRegistrarLogin(world, fresh);
      await createResource(world.service, world.token, '/key-chain', { id: fresh, usageType: 'access' });
      return { keyChain: fresh };
    },
  },
  'POST /registrar/registration-certificate': {
    request: (ids) => ({ json: { body: {}, presentationConfigurationId: ids.presentation } }),
    prepare: withRegistrarLogin,
  },
  'GET /webhook-secret': emptyRequest,
  'PATCH /webhook-secret': { request: () => ({ json: { signing: 'v1' } }) },
  'POST /webhook-secret/rotate': { request: () => ({ json: { overlapSeconds: 60 } }) },
  'POST /credentials/revoke-by-subject': { request: () => ({ json: { claims: { given_name: 'Ada', family_name: 'Lovelace' } } }) },
  'GET /session/:id/statuses': { request: (ids) => ({ params: { id: ids.issuance } }) },
  'POST /session/revoke': { request: (ids) => ({ json: { sessionId: ids.issuance, status: 1 } }) },
};

export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method.toUpperCase()} ${path}`;

export function recipeOf(route: Route): Recipe {
  const recipe = RECIPES[nameOf(route)];
  if (recipe === undefined) throw new Error(`test/support/requests.ts does not know ${nameOf(route)}`);
  return recipe;
}

/** Roles of a route; undefined for a public route. */
export function rolesOf({ access }: Route): readonly string[] | undefined {
  if (typeof access === 'string') return undefined;
  if ('anyOf' in access) return access.anyOf;
  if ('service' in access) return access.service;
  return 'either' in access ? access.either : access.stream;
}

/** The address of a route with its parameters filled in. */
export function addressOf({ path }: Pick<Route, 'path'>, params: Request['params'] = {}): string {
  return path.replaceAll(/:([A-Za-z]+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
}

let count = 0;

/** A unique id. */
export const freshId = () => `fresh-${(++count).toString(36)}`;
