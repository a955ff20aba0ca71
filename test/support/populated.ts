import { randomUUID } from 'node:crypto';
import { Store } from '../../application/ports/store.ts';
import { copyIdOf } from '../../application/trust-lists/list-copies.ts';
import { pinSigners, thumbprintOf } from '../../application/trust-lists/verify-trust-list.ts';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import type { Session } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { issuanceDeferral, stepsOf } from '../contract/store/steps.ts';
import { openConfirmation, openLogin, pushChained } from './chained-artefacts.ts';
import { newKey, RawWallet } from './raw-wallet.ts';
import { sharedRegistrar } from './registrar.ts';
import { certify, pem } from './test-certificates.ts';
import { type Callable, createTenant, type TestService } from './test-service.ts';

/** Ids of the resources of one tenant. */
export type TenantIds = {
  readonly tenant: string;
  readonly client: string;
  readonly keyChain: string;
  readonly credential: string;
  readonly presentation: string;
  readonly trustList: string;
  /** The previous version of the list. */
  readonly trustListVersion: string;
  /** A followed external list with a pending signer. */
  readonly followedList: string;
  /** The status list of the issued credentials. */
  readonly statusList: string;
  /** Both sessions have ended, so their event streams end at once. */
  readonly issuance: string;
  readonly verification: string;
  /** A deferred transaction that waits for the backend. */
  readonly deferred: string;
};

/** Values that a wallet of the tenant holds. */
export type WalletArtefacts = {
  /** Both are unused. */
  readonly code: string;
  readonly nonce: string;
  readonly offerId: string;
  /** The offer page of the same offer. */
  readonly pageId: string;
  readonly requestId: string;
  /** A request for the Digital Credentials API. */
  readonly dcApiId: string;
  /** Pushed by this wallet, not yet approved. */
  readonly requestUri: string;
  readonly accessToken: string;
  readonly listId: string;
  readonly vctId: string;
  readonly trustListId: string;
  /** The CA in the addresses of its certificates. */
  readonly authorityId: string;
  /** A pushed request at the chained authorization server. */
  readonly chainedRequestUri: string;
  /** An unfinished login at the upstream provider, and the cookie of its browser. */
  readonly loginState: string;
  readonly loginCookie: string;
  /** A finished login without the confirmation of the wallet, and the cookie of its browser. */
  readonly confirmation: string;
  readonly confirmationCookie: string;
  /** The id of the deferred transaction. */
  readonly transactionId: string;
  readonly notificationId: string;
};

export type PopulatedTenant = {
  readonly service: TestService;
  readonly token: string;
  readonly ids: TenantIds;
  readonly wallet: RawWallet;
  readonly artefacts: WalletArtefacts;
};

/** A key of a backend, which no response may contain. */
export const WEBHOOK_KEY = 'webhook-key-that-nobody-is-told';
export const UPSTREAM_SECRET = 'upstream-secret-that-nobody-is-told';
const webhook = { url: 'https://backend.example/hook', auth: { type: 'apiKey', config: { headerName: 'X-Api-Key', value: WEBHOOK_KEY } } };

export const credentialBody = (id: string, keyChainId: string) => ({
  id,
  keyChainId,
  config: { format: 'dc+sd-jwt', display: [{ name: 'Person ID', locale: 'en' }] },
  vct: { name: `Type of ${id}` },
  claims: { given_name: 'Ada', family_name: 'Lovelace' },
  disclosureFrame: { _sd: ['given_name', 'family_name'] },
  schema: { title: `Claims of ${id}`, type: 'object' },
  keyBinding: true,
  statusManagement: true,
  subjectClaims: [['given_name']],
});

export const presentationBody = (id: string, keyChainId: string) => ({
  id,
  dcql_query: { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:eudi:pid:1'] } }] },
  trustAnchors: [{ keyChainId }],
  expectedOrigins: ['https://shop.example'],
  webhook,
});

export const trustListBody = (id: string, keyChainId: string) => ({
  id,
  entities: [{ type: 'internal', issuerKeyChainId: keyChainId, info: { name: `Entity of ${id}`, country: 'DE', streetAddress: 'Weg 1' } }],
});

export const offerBody = (credential: string) => ({
  response_type: 'uri',
  flow: 'pre_authorized_code',
  credentialConfigurationIds: [credential],
});

export const claimsWebhookOffer = (credential: string) => ({
  ...offerBody(credential),
  credentialClaims: { [credential]: { type: 'webhook', webhook } },
});

/** Creates a tenant with one resource of each kind. Every configurable id begins with the id of the tenant. */
export async function populate(service: TestService, id: string): Promise<PopulatedTenant> {
  const { token } = await createTenant(service, id);
  const ids = {
    tenant: id,
    client: `${id}-client`,
    keyChain: `${id}-keys`,
    credential: `${id}-credential`,
    presentation: `${id}-presentation`,
    trustList: `${id}-trust-list`,
  };
  const post = (path: string, json: object) => createResource(service, token, path, json);
  await post('/client', { clientId: ids.client, roles: ['presentation:request'] });
  await post('/key-chain', { id: ids.keyChain, usages: ['signing', 'access'] });
  // The upstream provider is unreachable, so its calls fail at once.
  const upstream = { issuer: 'http://127.0.0.1:9', clientId: id, clientSecret: UPSTREAM_SECRET };
  const display = [{ name: `Issuer ${id}`, locale: 'en' }];
  // With the setting off, an unattested wallet receives that failure instead of a 503 page.
  await post('/issuer/config', { display, chainedAs: { upstream, confirmUnverifiedWallets: false } });
  await post('/issuer/credentials', credentialBody(ids.credential, ids.keyChain));
  await post('/verifier/config', presentationBody(ids.presentation, ids.keyChain));
  await post('/registrar/config', (await sharedRegistrar()).login());
  await post('/trust-list', trustListBody(ids.trustList, ids.keyChain));
  await post('/webhook-secret/rotate', {});
  const trustList = `/trust-list/${ids.trustList}`;
  await service.call('PATCH', trustList, { token, json: { description: `List of ${id}` } });
  const [version] = (await service.call('GET', `${trustList}/versions`, { token })).body;

  const wallet = new RawWallet(service, id);
  const offer = async () => post('/issuer/offer', offerBody(ids.credential));
  const issuedOffer = await offer();
  const accessToken = await wallet.accessToken(issuedOffer.uri);
  const key = newKey();
  const answer = await wallet.request(accessToken, ids.credential, { key });
  if (answer.status !== 200) throw new Error(`credential: ${answer.text}`);
  const [jwt = ''] = answer.body.credentials[0].credential.split('~');
  const { status } = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
  // The first request for a list creates its token, which its record shows.
  await service.call('GET', status.status_list.uri);

  const rejection = await post('/verifier/offer', { response_type: 'uri', requestId: ids.presentation });
  await rejectRequest(wallet, rejection.uri);
  const openRequest = await post('/verifier/offer', { response_type: 'uri', requestId: ids.presentation });
  const pageRequest = await post('/verifier/offer', { response_type: 'dc-api', requestId: ids.presentation });
  const deferred = await createDeferred(service, id, issuedOffer.session, ids.credential);
  const unusedOffer = await offer();
  const codeOffer = await post('/issuer/offer', {
    ...{ ...offerBody(ids.credential), flow: 'authorization_code' },
    authorization_server: wallet.issuer,
  });
  return {
    service,
    token,
    wallet,
    ids: {
      ...ids,
      trustListVersion: version.id,
      statusList: lastSegment(status.status_list.uri),
      issuance: issuedOffer.session,
      verification: rejection.session,
      deferred,
      followedList: await addPendingSigner(service, token, { tenant: id, name: `${id}-follower` }),
    },
    artefacts: {
      code: await wallet.code(unusedOffer.uri),
      nonce: await wallet.nonce(),
      offerId: lastSegment(new URL(unusedOffer.uri).searchParams.get('credential_offer_uri')),
      pageId: lastSegment(unusedOffer.pageUrl),
      requestId: lastSegment(new URL(openRequest.uri).searchParams.get('request_uri')),
      dcApiId: lastSegment(pageRequest.uri),
      requestUri: await wallet.push(codeOffer.uri, ids.credential),
      chainedRequestUri: await pushChained(wallet, ids.credential),
      ...(await openLogin(service, id, ids.credential)),
      ...(await openConfirmation(service, id, ids.credential)),
      accessToken,
      listId: lastSegment(status.status_list.uri),
      vctId: ids.credential,
      trustListId: ids.trustList,
      authorityId: await caIdOf(service, token),
      transactionId: deferred,
      notificationId: answer.body.notification_id,
    },
  };
}

const [PINNED_SIGNER, NEXT_SIGNER] = await Promise.all([certify({ name: 'Before' }), certify({ name: 'After' })]);
export const NEXT_FINGERPRINT = thumbprintOf(NEXT_SIGNER.certificate);

/** Adds an external trust list with a release by a new signer. @param role role that manages the list. */
export async function addPendingSigner(
  service: TestService,
  token: string,
  { tenant, name, role = '' }: { readonly tenant: string; readonly name: string; readonly role?: string },
): Promise<string> {
  const trustList = `https://${tenant}.lists.example/${name}`;
  const signerPems = [pem(PINNED_SIGNER)];
  if (role === 'issuance:manage') {
    const { body } = await service.call('GET', '/issuer/config', { token });
    const { createdAt: _created, updatedAt: _updated, ...known } = body;
    const wallets = { walletProviderTrustLists: [trustList], walletProviderTrustListCertificates: signerPems };
    await createResource(service, token, '/issuer/config', { ...known, ...wallets });
  } else {
    const { webhook: _webhook, ...configuration } = presentationBody(name, 'signing');
    const trustAnchors = [{ trustList, signedBy: signerPems }];
    await createResource(service, token, '/verifier/config', { ...configuration, trustAnchors });
  }
  const id = copyIdOf(trustList, pinSigners(signerPems));
  const signer = NEXT_SIGNER.certificate;
  const finding = { fault: 'untrusted_signer', reason: 'untrusted_signer', signer } as const;
  const lists = service.service.container.get(Store).lists(tenant as TenantId);
  await lists.recordProblem(id, { uri: trustList }, finding, new Date());
  return id;
}

async function caIdOf(service: TestService, token: string): Promise<string> {
  const { rootCertificate } = (await service.call('GET', '/key-chain/signing', { token })).body;
  const [der = ''] = parsePemCertificates(rootCertificate, 1) ?? [];
  const { keyHash = '' } = parseCertificate(Buffer.from(der, 'base64')) ?? {};
  return Buffer.from(keyHash, 'base64url').toString('hex');
}

/** Creates a deferred transaction as a claims webhook does. */
export async function createDeferred(
  { service }: TestService,
  tenantId: string,
  sessionId: string,
  credentialConfigurationId: string,
): Promise<string> {
  const steps = stepsOf(service.container.get(Store), tenantId as TenantId);
  const session = (await steps.session(sessionId as SessionId))?.session;
  if (session === undefined) throw new Error(`no session ${sessionId}`);
  const now = new Date();
  const id = `${tenantId}-${randomUUID()}`;
  await steps.commit(
    issuanceDeferral(
      {
        id,
        sessionId: session.id,
        publicId: session.publicId,
        grantId: 'none',
        credentialConfigurationId,
        holderKeys: [newKey().jwk as PublicJwk],
        status: 'pending',
        intervalSeconds: 5,
        credentials: null,
        batchId: null,
        errorMessage: null,
        walletStatuses: null,
        authorizedAt: null,
        createdAt: now,
        updatedAt: now,
        expiresAt: new Date(now.getTime() + 3_600_000),
      },
      1,
    ),
  );
  await service.container.get(Store).commit(tenantId as TenantId, { holds: makeTransaction(id), follows: followed(session) }, now);
  return id;
}

/** Declines a presentation as a wallet does. */
async function rejectRequest(wallet: RawWallet, uri: string): Promise<void> {
  const requestUri = new URL(uri).searchParams.get('request_uri') ?? '';
  const { text } = await wallet.service.call('GET', requestUri);
  const { state } = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString());
  const form = { state, error: 'access_denied' };
  const answer = await wallet.service.call('POST', requestUri.replace('/request/', '/response/'), { form });
  if (answer.status !== 200) throw new Error(`rejection: ${answer.text}`);
}

/** The body of a 201. */
// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
export async function createResource(service: Callable, token: string, path: string, json: object): Promise<any> {
  const answer = await service.call('POST', path, { token, json });
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${answer.text}`);
  return answer.body;
}

/** Creates a client with these rights. @returns its token. */
export async function addClient(
  { service, token }: Pick<PopulatedTenant, 'service' | 'token'>,
  clientId: string,
  rights: { readonly roles: readonly string[] } & Readonly<Record<string, unknown>>,
): Promise<string> {
  const secret = `secret-of-${clientId}-0123456789`;
  await createResource(service, token, '/client', { clientId, secret, ...rights });
  return service.token(clientId, secret);
}

export function lastSegment(address: string | null): string {
  return address?.split('/').at(-1) ?? '';
}

const PROVIDERS_LIST = { uri: 'https://wallet-provider.example/status/1', anchor: 'anchor', idx: 5 };
const makeTransaction = (transactionId: string) => ({ transactionId, statuses: [PROVIDERS_LIST] });
const followed = ({ id: sessionId }: Pick<Session, 'id'>) => ({
  ...{ sessionId, batchId: randomUUID(), endsAt: null },
  statuses: [{ ...PROVIDERS_LIST, listId: 'list' }],
});
