import { inflateSync } from 'node:zlib';
import { expect } from 'chai';
import { createResource, credentialBody, offerBody } from './populated.ts';
import { decode, type FetchedRequest, type HeldCredential, issue, present, requestPresentation } from './present.ts';
import { newKey, RawWallet } from './raw-wallet.ts';
import { type Callable, createTenant, type TestService } from './test-service.ts';

const QUERY = {
  id: 'check',
  dcql_query: {
    credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:upgrade:pid'] }, claims: [{ path: ['given_name'] }] }],
  },
  trustAnchors: [{ keyChainId: 'signing' }],
};
const CREDENTIAL = { ...credentialBody('pid', 'signing'), vct: 'urn:upgrade:pid', subjectClaims: undefined };

/** The state that an earlier release created. */
export type ReleaseState = {
  readonly token: string;
  readonly secret: string;
  readonly valid: HeldCredential;
  readonly revoked: HeldCredential;
  /** An offer that no wallet has fetched. */
  readonly openOffer: { readonly uri: string; readonly session: string };
  /** A wallet that has its access token, and no credential yet. */
  readonly halfway: { readonly wallet: RawWallet; readonly accessToken: string; readonly session: string };
  readonly openRequest: FetchedRequest;
  readonly chains: readonly { readonly id: string; readonly certificate?: string }[];
};

export const asService = (calls: Callable) => calls as unknown as TestService;

export async function createState(calls: Callable): Promise<ReleaseState> {
  const { token, id } = await createTenant(calls, 'acme');
  const secret = 'secret-of-the-shop-0123456789';
  await createResource(calls, token, '/client', { clientId: 'shop', secret, roles: ['issuance:offer'] });
  const json = { bits: 1, capacity: 1000, ttl: 900, immediateUpdate: true };
  expect((await calls.call('PUT', '/status-list-config', { token, json })).status).to.equal(200);
  await createResource(calls, token, '/issuer/credentials', CREDENTIAL);
  await createResource(calls, token, '/verifier/config', QUERY);
  const issuer = { id, token };
  const [valid, revoked] = [await issue(asService(calls), issuer, 'pid'), await issue(asService(calls), issuer, 'pid')];
  await revoke(calls, token, revoked);
  const openOffer = await createResource(calls, token, '/issuer/offer', offerBody('pid'));
  const pendingOffer = await createResource(calls, token, '/issuer/offer', offerBody('pid'));
  const wallet = new RawWallet(calls, id);
  const accessToken = await wallet.accessToken(pendingOffer.uri);
  const openRequest = await requestPresentation(asService(calls), token, 'check');
  const { body: chains } = await calls.call('GET', '/key-chain', { token });
  return {
    ...{ token, secret, valid, revoked, openOffer, openRequest, chains },
    halfway: { wallet, accessToken, session: pendingOffer.session },
  };
}

/** The status of a credential in the published list. */
export async function readStatus(calls: Callable, { text }: HeldCredential): Promise<number> {
  const { uri, idx } = decode(text).payload['status'].status_list as { uri: string; idx: number };
  const list = await calls.call('GET', uri, { headers: { Accept: 'application/statuslist+jwt' } });
  expect(list.status, list.text).to.equal(200);
  const { bits, lst } = decode(list.text).payload['status_list'] as { bits: number; lst: string };
  expect(bits).to.equal(1);
  const bytes = inflateSync(Buffer.from(lst, 'base64url'));
  return ((bytes[idx >> 3] ?? 0) >> (idx & 7)) & 1;
}

export async function revoke(calls: Callable, token: string, { session }: Pick<HeldCredential, 'session'>): Promise<void> {
  const answer = await calls.call('POST', '/session/revoke', { token, json: { sessionId: session, status: 1 } });
  expect(answer.status, answer.text).to.equal(201);
}

export async function redeemOffer(calls: Callable, uri: string): Promise<RawWallet> {
  const wallet = new RawWallet(calls, 'acme');
  const credentialResponse = await wallet.request(await wallet.accessToken(uri), 'pid', { key: newKey() });
  expect(credentialResponse.status, `an open offer: ${credentialResponse.text}`).to.equal(200);
  return wallet;
}

export async function presentCredential(calls: Callable, token: string, credential: HeldCredential): Promise<number> {
  return (await present(asService(calls), await requestPresentation(asService(calls), token, 'check'), credential)).status;
}

export async function expectStateUsable(calls: Callable, state: ReleaseState): Promise<void> {
  const { token } = state;
  const { status: configurationsStatus } = await calls.call('GET', '/issuer/credentials', { token });
  expect(configurationsStatus, 'an access token that the first release gave').to.equal(200);
  expect(await readStatus(calls, state.valid)).to.equal(0);
  expect(await readStatus(calls, state.revoked)).to.equal(1);
  const { body: chains } = await calls.call('GET', '/key-chain', { token });
  expect(chains.map(({ id }: { id: string }) => id)).to.deep.equal(state.chains.map(({ id }) => id));

  const { wallet, accessToken } = state.halfway;
  const credentialResponse = await new MigratedWallet(wallet, calls).request(accessToken, 'pid', { key: newKey() });
  expect(credentialResponse.status, `the wallet that was halfway: ${credentialResponse.text}`).to.equal(200);
  const secondWallet = await redeemOffer(calls, state.openOffer.uri);
  const secondAttempt = await secondWallet.redeem(await secondWallet.code(state.openOffer.uri).catch(() => ''));
  expect(secondAttempt.status, 'the offer once more').to.equal(400);
  for (const { session } of [state.halfway, state.openOffer]) {
    const { body } = await calls.call('GET', `/session/${session}`, { token });
    expect(body.status).to.equal('completed');
  }

  const presentationResponse = await present(asService(calls), state.openRequest, state.valid);
  expect(presentationResponse.status, `the open request: ${presentationResponse.text}`).to.equal(200);
  expect(await presentCredential(calls, token, state.valid), 'a valid credential').to.equal(200);
  expect(await presentCredential(calls, token, state.revoked), 'a revoked credential').to.equal(400);
  await revoke(calls, token, state.valid);
  expect(await presentCredential(calls, token, state.valid), 'one that was revoked by this release').to.equal(400);
  await calls.token('shop', state.secret);
}

/** The wallet with its keys, calling another process. */
class MigratedWallet extends RawWallet {
  override readonly dpopKey: RawWallet['dpopKey'];

  constructor(originalWallet: RawWallet, calls: Callable) {
    super(calls, originalWallet.tenant);
    this.dpopKey = originalWallet.dpopKey;
  }
}
