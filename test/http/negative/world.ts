import { Clock } from '../../../application/ports/clock.ts';
import { FetchedSessions } from '../../../application/sessions/fetched-sessions.ts';
import { obtain } from '../../../bootstrap/wiring/wire.ts';
import { Backend } from '../../support/backend.ts';
import { createResource } from '../../support/populated.ts';
import { dpopProof, type HolderKey, keyProof, newKey, RawWallet } from '../../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../../support/test-service.ts';
import { WalletProvider } from '../../support/wallet-provider.ts';

/** `open`: as little is demanded as can be. `strict`: attested wallets, attested keys, encryption, DPoP nonces. */
export type TenantName = 'open' | 'strict' | 'plain';

/** What every case starts from: tenants that differ in what they demand of wallets. */
export type World = {
  readonly service: TestService;
  readonly backend: Backend;
  readonly provider: WalletProvider;
  wallet(tenant?: TenantName): RawWallet;
  admin(tenant: TenantName, method: string, path: string, json?: unknown): Promise<Answer>;
  offer(tenant: TenantName, ids: readonly string[], more?: object): Promise<{ uri: string; session: string }>;
  /** An access token by pre-authorized code for these configurations. */
  token(ids?: readonly string[]): Promise<{ wallet: RawWallet; token: string; session: string }>;
  /** Until `work` is over, the service's clock is ahead. */
  later<T>(seconds: number, work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
};

const configuration = (id: string, more: object = {}) => ({
  id,
  config: { format: 'dc+sd-jwt', scope: `scope-${id}`, display: [{ name: id, locale: 'en' }] },
  vct: `urn:${id}:1`,
  claims: { name: 'Ada' },
  ...more,
});

export async function openWorld(): Promise<World> {
  const backend = await Backend.start();
  const provider = await WalletProvider.start();
  const service = await startTestService();
  const tokens = new Map<string, string>();
  const display = [{ name: 'Issuer', locale: 'en' }];
  for (const id of ['open', 'strict', 'plain', 'foreign']) {
    tokens.set(id, (await createTenant(service, id)).token);
  }
  const post = (tenant: string, path: string, json: object) => createResource(service, tokens.get(tenant) ?? '', path, json);

  await post('open', '/issuer/config', { display, batchSize: 3, builtInAs: { walletInitiated: true } });
  for (const entry of [
    configuration('card', { statusManagement: true }),
    configuration('pass'),
    configuration('unbound', { keyBinding: false }),
    configuration('hooked', { claimsWebhook: { url: `${backend.url}/claims` } }),
    configuration('slow', { claimsWebhook: { url: `${backend.url}/deferred` } }),
    configuration('attested', { keyAttestationsRequired: { key_storage: ['iso_18045_high'], user_authentication: ['iso_18045_high'] } }),
  ]) {
    await post('open', '/issuer/credentials', entry);
  }
  await post('plain', '/issuer/config', { display, requestEncryption: 'off', responseEncryption: 'off' });
  await post('plain', '/issuer/credentials', configuration('card'));
  await post('strict', '/issuer/config', {
    display,
    ...provider.configuration(),
    attestationMaxAgeSeconds: 3600,
    builtInAs: { walletInitiated: true },
    requestEncryption: 'required',
    responseEncryption: 'required',
    dPopNonce: 'required',
  });
  await post('strict', '/issuer/credentials', configuration('card'));
  // The trust list of the open tenant vouches for keys, and attestations of wallets are welcome but not demanded.
  await post('open', '/issuer/config', {
    display,
    batchSize: 3,
    builtInAs: { walletInitiated: true },
    ...provider.configuration(),
    walletAttestationRequired: false,
  });
  backend.on('/deferred', { json: { deferred: true } });
  backend.on('/claims', (response) => response.writeHead(500).end());

  const offer: World['offer'] = (tenant, ids, more = {}) =>
    post(tenant, '/issuer/offer', { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ids, ...more });
  const wallet = (tenant: TenantName = 'open') => new RawWallet(service, tenant);
  const clock = service.service.container.get(Clock);
  return {
    service,
    backend,
    provider,
    wallet,
    offer,
    admin: (tenant, method, path, json) =>
      service.call(method, path, { token: tokens.get(tenant) ?? '', ...(json === undefined ? {} : { json }) }),
    async token(ids = ['card']) {
      const { uri, session } = await offer('open', ids);
      const own = wallet();
      return { wallet: own, token: await own.accessToken(uri), session };
    },
    async later(seconds, work) {
      // Otherwise fetches that were noted a moment ago could be written as of then, when their sessions are over.
      await obtain(service.service.container, FetchedSessions).flush();
      const now = clock.now.bind(clock);
      clock.now = () => new Date(now().getTime() + seconds * 1000);
      try {
        return await work();
      } finally {
        clock.now = now;
      }
    },
    async close() {
      await service.close();
      await backend.close();
      await provider.close();
    },
  };
}

/** What an answer has to be. */
export type Expected =
  | { readonly status: number; readonly error?: string; readonly headers?: Readonly<Record<string, RegExp>> }
  /** A page for the user: never a redirect. */
  | { readonly page: number }
  /** A redirect to the wallet with this error. */
  | { readonly redirected: string };

/** One line of the table: a number of the digest's list, what is wrong, and what has to come of it. */
export type Case = {
  readonly row: number;
  readonly what: string;
  readonly run: (world: World) => Promise<Answer>;
  readonly expected: Expected;
};

export const refused = (error: string, status = 400): Expected => ({ status, error });
export const accepted = (status = 200): Expected => ({ status });

/** Headers of an attested wallet at the strict tenant, with every part bendable. */
export async function attestedHeaders(
  { provider, service }: World,
  wallet: RawWallet,
  endpoint: 'par' | 'token',
  options: {
    readonly instance?: HolderKey;
    readonly challenge?: string | null;
    readonly attestation?: Parameters<WalletProvider['attestation']>[1];
    readonly pop?: Parameters<WalletProvider['pop']>[2];
    readonly audience?: string;
  } = {},
): Promise<Record<string, string>> {
  const { instance = newKey(), challenge, attestation, pop, audience = wallet.issuer } = options;
  const fresh = (await service.call('POST', `/${wallet.tenant}/challenge`)).body.attestation_challenge;
  const headers = provider.headers(instance, audience, challenge === null ? undefined : (challenge ?? fresh), {
    ...(attestation === undefined ? {} : { attestation }),
    ...(pop === undefined ? {} : { pop }),
  });
  return { ...headers, DPoP: await noncedProof(service, wallet, endpoint) };
}

/** A DPoP proof with a nonce, where the tenant demands one. */
export async function noncedProof(service: TestService, wallet: RawWallet, endpoint: 'par' | 'token'): Promise<string> {
  const url = `${wallet.issuer}/${endpoint}`;
  const probe = await service.call('POST', `/${wallet.tenant}/par`, {
    form: { client_id: 'probe' },
    headers: { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/par`) },
  });
  const nonce = probe.headers.get('dpop-nonce');
  return dpopProof(wallet.dpopKey, url, nonce === null ? {} : { payload: { nonce } });
}

/** A credential request of `open` with these proofs. */
export async function requestWith(world: World, proofs: (wallet: RawWallet, nonce: string) => unknown, id = 'card'): Promise<Answer> {
  const { wallet, token } = await world.token([id]);
  const body = { credential_configuration_id: id, proofs: proofs(wallet, await wallet.nonce()) };
  return wallet.request(token, id, { body });
}

/** The same with one `jwt` proof that is bent. */
export const requestBent = (world: World, bend: Parameters<typeof keyProof>[3], key: HolderKey = newKey()): Promise<Answer> =>
  requestWith(world, (wallet, nonce) => ({ jwt: [keyProof(key, wallet.issuer, nonce, bend)] }));

/** An access token of the strict tenant: attested, with DPoP nonces, by authorization code. */
export async function strictTokens(world: World, wallet: RawWallet): Promise<string> {
  const instance = newKey();
  const clientId = world.provider.clientId;
  const probe = await wallet.par({ scope: 'scope-card', client_id: clientId }, await attestedHeaders(world, wallet, 'par', { instance }));
  const nonce = probe.headers.get('dpop-nonce') ?? '';
  const send = async (endpoint: 'par' | 'token') => ({
    ...(await attestedHeaders(world, wallet, endpoint, { instance })),
    DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/${endpoint}`, { payload: { nonce } }),
  });
  const pushed = await wallet.par({ scope: 'scope-card' }, await send('par'));
  if (pushed.status !== 201) throw new Error(`par: ${pushed.text}`);
  const code = await wallet.authorize(pushed.body.request_uri);
  const answer = await wallet.redeemCode(code, {}, await send('token'));
  if (answer.status !== 200) throw new Error(`token: ${answer.text}`);
  return answer.body.access_token as string;
}
