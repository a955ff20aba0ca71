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

/** What the first release leaves behind. */
export type ReleaseState = {
  readonly token: string;
  readonly secret: string;
  readonly valid: HeldCredential;
  readonly revoked: HeldCredential;
  /** Nobody has opened it. */
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
  const begun = await createResource(calls, token, '/issuer/offer', offerBody('pid'));
  const wallet = new RawWallet(calls, id);
  const accessToken = await wallet.accessToken(begun.uri);
  const openRequest = await requestPresentation(asService(calls), token, 'check');
  const { body: chains } = await calls.call('GET', '/key-chain', { token });
  return { ...{ token, secret, valid, revoked, openOffer, openRequest, chains }, halfway: { wallet, accessToken, session: begun.session } };
}

/** The bit of a credential in the list that its issuer publishes. */
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
  const collected = await wallet.request(await wallet.accessToken(uri), 'pid', { key: newKey() });
  expect(collected.status, `an open offer: ${collected.text}`).to.equal(200);
  return wallet;
}

export async function presentCredential(calls: Callable, token: string, held: HeldCredential): Promise<number> {
  return (await present(asService(calls), await requestPresentation(asService(calls), token, 'check'), held)).status;
}

export async function expectStateUsable(calls: Callable, left: ReleaseState): Promise<void> {
  const { token } = left;
  const { status: known } = await calls.call('GET', '/issuer/credentials', { token });
  expect(known, 'an access token that the first release gave').to.equal(200);
  expect(await readStatus(calls, left.valid)).to.equal(0);
  expect(await readStatus(calls, left.revoked)).to.equal(1);
  const { body: chains } = await calls.call('GET', '/key-chain', { token });
  expect(chains.map(({ id }: { id: string }) => id)).to.deep.equal(left.chains.map(({ id }) => id));

  const { wallet, accessToken } = left.halfway;
  const collected = await new MigratedWallet(wallet, calls).request(accessToken, 'pid', { key: newKey() });
  expect(collected.status, `the wallet that was halfway: ${collected.text}`).to.equal(200);
  const second = await redeemOffer(calls, left.openOffer.uri);
  const again = await second.redeem(await second.code(left.openOffer.uri).catch(() => ''));
  expect(again.status, 'the offer once more').to.equal(400);
  for (const { session } of [left.halfway, left.openOffer]) {
    const { body } = await calls.call('GET', `/session/${session}`, { token });
    expect(body.status).to.equal('completed');
  }

  const answered = await present(asService(calls), left.openRequest, left.valid);
  expect(answered.status, `the open request: ${answered.text}`).to.equal(200);
  expect(await presentCredential(calls, token, left.valid), 'a valid credential').to.equal(200);
  expect(await presentCredential(calls, token, left.revoked), 'a revoked credential').to.equal(400);
  await revoke(calls, token, left.valid);
  expect(await presentCredential(calls, token, left.valid), 'one that was revoked by this release').to.equal(400);
  await calls.token('shop', left.secret);
}

/** The same wallet, with its keys, which calls another process. */
class MigratedWallet extends RawWallet {
  override readonly dpopKey: RawWallet['dpopKey'];

  constructor(former: RawWallet, calls: Callable) {
    super(calls, former.tenant);
    this.dpopKey = former.dpopKey;
  }
}
