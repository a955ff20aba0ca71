import { expect } from 'chai';
import sinon from 'sinon';
import { NotifyWalletRevocations } from '../../../application/issuance/notify-wallet-revocations.ts';
import { FollowWallets } from '../../../application/oauth/follow-wallets.ts';
import type { EventPublisher, RevocationNotice } from '../../../application/ports/event-publisher.ts';
import { TenantConfiguration } from '../../../application/tenant-cache/tenant-configuration.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { certify } from '../../support/test-certificates.ts';
import { ACME } from '../verification/kit.ts';
import { AttestedWallet, anOffer, endOf, failureOf, WalletWorld } from '../wallet-kit.ts';

const DAY = 86_400;

describe('credentials that follow their wallet', () => {
  let world: WalletWorld;
  let wallet: AttestedWallet;
  let follow: FollowWallets;
  let tell: NotifyWalletRevocations;

  beforeEach(async () => {
    world = await WalletWorld.open();
    wallet = await AttestedWallet.make(world);
    await world.issues({ ...wallet.provider.configuration(), batchSize: 5 });
    await world.offers({ id: 'card', statusManagement: true, lifeTime: 30 * DAY });
    follow = new FollowWallets(world);
    tell = new NotifyWalletRevocations(world);
    wallet.says = { client_status: { status: wallet.provider.status(3), exp: world.seconds + 10 * DAY } };
  });
  afterEach(() => sinon.restore());

  /** Runs the job until nothing is due. @returns how many batches fell. */
  const run = async (after = 0): Promise<number> => {
    let fallen = 0;
    for (;;) {
      const step = await world.later(after, () => follow.execute(world.clock.now()));
      fallen += step.fallen;
      if (!step.mayBeMore) return fallen;
    }
  };
  const attested = async (says: object, keys = [newKey()]) => {
    const nonce = await wallet.nonce();
    const text = wallet.provider.keyAttestation(keys, { nonce, payload: { ...says } });
    return { proofs: { attestation: [text] } };
  };
  const issue = async (changes: object = {}) => {
    const offered = await anOffer(world);
    const issued = await wallet.issue(await wallet.token(offered), changes);
    return { issued, session: offered.session.id };
  };
  const statusOf = async ({ issued }: Awaited<ReturnType<typeof issue>>) => {
    const all = issued.credentials.map(({ credential }) => {
      const { status } = decode(credential.split('~')[0] ?? '').payload as { status: { status_list: { idx: number; uri: string } } };
      return status.status_list;
    });
    const listId = all[0]?.uri.split('/').at(-1) ?? '';
    const entries = await world.store.read(ACME).statusEntries(listId, 0);
    return all.map(({ idx }) => entries.find(({ index }) => index === idx)?.status ?? 0);
  };
  const revoke = (index: number, status = 1) => {
    wallet.provider.statuses.set(index, status);
  };
  /** The list says that a copy is good for a minute. */
  const LATER = 90;

  it('are revoked with it, at the next fetch of the list', async () => {
    const [one, other] = [await issue(), await issue()];
    wallet.says = { client_status: { status: wallet.provider.status(4) } };
    const lasting = await issue();
    expect(await run()).to.equal(0);
    revoke(3);
    expect(await run(), 'the copy is fresh').to.equal(0);
    expect(await run(LATER)).to.equal(2);
    expect([await statusOf(one), await statusOf(other), await statusOf(lasting)]).to.deep.equal([[1], [1], [0]]);
    expect(await run(2 * LATER), 'they follow nothing more').to.equal(0);
  });

  it('are also revoked in a list that another process created concurrently', async () => {
    const one = await issue();
    revoke(3);
    const behind = sinon.stub(TenantConfiguration.prototype, 'statusLists').resolves([]);
    expect(await run(LATER)).to.equal(1);
    behind.restore();
    expect(await statusOf(one)).to.deep.equal([1]);
  });

  it('stay revoked when the provider reverses the revocation (ARF VCR_04)', async () => {
    const one = await issue();
    revoke(3);
    expect(await run(LATER)).to.equal(1);
    revoke(3, 0);
    expect(await run(2 * LATER)).to.equal(0);
    expect(await statusOf(one)).to.deep.equal([1]);
    const restoring = world.revokeSession.execute(cachedCaller(await world.caller()), { ...{ sessionId: one.session, status: 0 } });
    expect(await endOf(restoring)).to.equal('conflict');
    expect(await statusOf(one)).to.deep.equal([1]);
  });

  it('are all revoked as copies of a batch, also by the key storage of their keys', async () => {
    await world.offers({ id: 'card', statusManagement: true, keyAttestationsRequired: {} });
    const keys = [newKey(), newKey(), newKey()];
    const status = { key_storage_status: { status: wallet.provider.status(8) } };
    const batch = await issue(await attested(status, keys));
    const untouched = await issue(await attested({ key_storage_status: { status: wallet.provider.status(9) } }));
    revoke(8);
    expect(await run(LATER)).to.equal(1);
    expect([await statusOf(batch), await statusOf(untouched)]).to.deep.equal([[1, 1, 1], [0]]);
  });

  it('are unchanged while the wallet is suspended, since revocation is permanent', async () => {
    const one = await issue();
    revoke(3, 2);
    expect(await run(LATER)).to.equal(0);
    expect(await statusOf(one)).to.deep.equal([0]);
  });

  it('are not revoked while the list is unavailable or has another signer', async () => {
    const one = await issue();
    await run();
    revoke(3);
    const { answer } = world.remote;
    const other = await certify({ name: 'Other', by: wallet.provider.root });
    let sequenceNumber = 1;
    const next = (list: object = {}) => wallet.provider.list({ ...list, sequenceNumber: ++sequenceNumber });
    const faults: readonly [string, () => void][] = [
      ['it does not answer', () => (world.remote.answer = () => ({ status: 503, contentType: '', body: Buffer.alloc(0) }))],
      ['another of the provider signs it', () => (wallet.provider.statusSigner = [other])],
      ['nobody vouches for the provider', () => (wallet.provider.published = next({ entities: [] }))],
    ];
    let after = LATER;
    for (const [what, cause] of faults) {
      cause();
      after += 3_600;
      world.trustLists.clear(ACME);
      expect(await run(after), what).to.equal(0);
      expect(await statusOf(one), what).to.deep.equal([0]);
      const [list] = await world.store.maintenance.followedLists(ACME, 10);
      expect(list?.failure?.count, what).to.be.greaterThan(0);
      world.remote.answer = answer;
      wallet.provider.statusSigner = [wallet.provider.revocationSigner];
      wallet.provider.published = next();
      world.trustLists.clear(ACME);
    }
    world.remoteStatusLists.clear(ACME);
    expect(await run(after + 3_600), 'it is tried again').to.equal(1);
    expect((await world.store.maintenance.followedLists(ACME, 10))[0]?.failure).to.equal(null);
  });

  it('are followed when the provider changed its certificates on the trust list, and by no other provider', async () => {
    const one = await issue();
    revoke(3);
    const [next, revoker] = [
      await certify({ name: 'Wallet CA, second', ca: true }),
      await certify({ name: 'Revocation CA, second', ca: true }),
    ];
    const services = [
      { type: 'WalletSolution/Issuance', certificates: [next.certificate] },
      { type: 'WalletSolution/Revocation', certificates: [revoker.certificate] },
    ];
    const { name } = wallet.provider.entity();
    wallet.provider.statusSigner = [await certify({ name: 'Revocation, second', by: revoker })];
    wallet.provider.published = wallet.provider.list({ entities: [{ name: 'Another one', services }] });
    world.trustLists.clear(ACME);
    expect(await run(LATER)).to.equal(0);
    expect(await statusOf(one)).to.deep.equal([0]);
    wallet.provider.published = wallet.provider.list({ entities: [{ name, services }], sequenceNumber: 2 });
    world.trustLists.clear(ACME);
    world.remoteStatusLists.clear(ACME);
    expect(await run(LATER + 120)).to.equal(1);
    expect(await statusOf(one)).to.deep.equal([1]);
  });

  it('are followed while the provider has an old and a new certificate and signs its lists with the new one', async () => {
    const { root: old } = wallet.provider;
    const { name } = wallet.provider.entity();
    const listed = (certificates: readonly { readonly certificate: string }[], sequenceNumber: number) =>
      wallet.provider.list({
        sequenceNumber,
        entities: [{ name, services: [{ type: 'WalletSolution/Issuance', certificates: certificates.map((one) => one.certificate) }] }],
      });
    wallet.provider.published = listed([old], 2);
    wallet.provider.statusSigner = [await certify({ name: 'Status, first', by: old })];
    world.trustLists.clear(ACME);
    const one = await issue();
    revoke(3);
    const next = await certify({ name: 'Wallet CA, second', ca: true });
    wallet.provider.published = listed([old, next], 3);
    wallet.provider.statusSigner = [await certify({ name: 'Status, second', by: next })];
    world.trustLists.clear(ACME);
    world.remoteStatusLists.clear(ACME);
    expect(await run(LATER)).to.equal(1);
    expect(await statusOf(one)).to.deep.equal([1]);
  });

  it('are not revoked by a list that is served at another address', async () => {
    const one = await issue();
    revoke(3);
    const { answer } = world.remote;
    world.remote.answer = (url) => answer(url.replace('/status/2', '/status/1'));
    wallet.says = {};
    const [list] = await world.store.maintenance.followedLists(ACME, 10);
    expect(list?.uri).to.equal(`${wallet.provider.url}/status/1`);
    const swapped = { ...list, uri: `${wallet.provider.url}/status/2` } as NonNullable<typeof list>;
    const now = new Date(world.clock.now().getTime() + LATER * 1000);
    const asked = world.walletProviderTrust.followedList((await world.tenantConfigurations.readStored(ACME)) as never, swapped, now);
    expect(
      await asked.then(
        () => 'taken',
        (error: Error) => error.message,
      ),
    ).to.equal('status_invalid: sub');
    expect(await statusOf(one)).to.deep.equal([0]);
  });

  it('leave an audit entry, an annotation of their session and a webhook call', async () => {
    await world.offers({ ...{ id: 'card', statusManagement: true }, notificationWebhook: { url: 'https://shop.example/told' } });
    const one = await issue();
    revoke(3);
    expect(await run(LATER)).to.equal(1);
    expect(await tell.execute()).to.equal(1);
    expect(await tell.execute()).to.equal(0);
    const { issued, session } = one;
    const [call] = world.webhooks.calls;
    expect(call?.body).to.deep.equal({
      session,
      notification: {
        id: issued.notification_id,
        event: 'credential_revoked',
        credentialConfigurationId: 'card',
        eventDescription: 'the wallet provider revoked the wallet or its key storage',
      },
    });
    const { outcome, status } = await world.session(session);
    expect(status).to.equal('completed');
    expect(outcome?.revokedWithWallet?.map(({ id }) => id)).to.deep.equal([issued.notification_id]);
    expect(outcome?.deliveries?.map(({ result }) => result)).to.deep.equal(['delivered']);
    const log = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 5, ascending: false }));
    const entry = log.find(({ kind }) => kind === 'wallet-status-list');
    expect([entry?.action, entry?.actor, entry?.target]).to.deep.equal(['revoked', 'system', `${wallet.provider.url}/status/1`]);
    expect(entry?.detail).to.include(session).and.to.include('"credentials","after":1');
  });

  describe('when other systems subscribe to events', () => {
    const sent: RevocationNotice[] = [];
    const publisher = { isReady: true, publishRevocation: async (notice: RevocationNotice) => sent.push(notice) > 0 };
    const asPublisher = (changes: object = {}) => ({ ...publisher, ...changes }) as unknown as EventPublisher;
    beforeEach(() => sent.splice(0));
    const fallen = async () => {
      const one = await issue();
      revoke(3);
      await run(LATER);
      return one;
    };

    it('are reported once, without data that identifies the holder', async () => {
      const { session } = await fallen();
      expect(await tell.execute(asPublisher())).to.equal(2);
      expect(await tell.execute(asPublisher())).to.equal(0);
      const [{ batchId, at, ...notice }] = sent as [RevocationNotice];
      expect(notice).to.deep.equal({ tenantId: ACME, sessionId: session, credentialConfigurationId: 'card' });
      expect([sent.length, batchId.length > 10, at instanceof Date]).to.deep.equal([1, true, true]);
    });

    it('wait for the broker, but the webhook does not', async () => {
      const { session } = await fallen();
      expect(await tell.execute(asPublisher({ isReady: false }))).to.equal(1);
      expect((await world.session(session)).outcome?.revokedWithWallet).to.have.length(1);
      const lost = asPublisher({ publishRevocation: () => Promise.reject(new Error('lost')) });
      expect(await tell.execute(lost)).to.equal(0);
      expect(sent).to.deep.equal([]);
      expect(await tell.execute(asPublisher())).to.equal(1);
      expect(sent).to.have.length(1);
      expect((await world.session(session)).outcome?.revokedWithWallet, 'once').to.have.length(1);
    });

    it('are not kept for later if there are no subscribers', async () => {
      await fallen();
      await tell.execute(asPublisher({ isReady: false }));
      await tell.execute();
      expect(await tell.execute(asPublisher())).to.equal(0);
      expect(sent).to.deep.equal([]);
    });
  });

  it('are revoked even if their session was removed', async () => {
    const one = await issue();
    await world.store.commit(ACME, { removes: one.session as SessionId }, world.clock.now());
    revoke(3);
    expect(await run(LATER)).to.equal(1);
    expect(await statusOf(one)).to.deep.equal([1]);
    expect(await tell.execute()).to.equal(1);
  });

  it('do not follow the wallet if the configuration disables it, or if the wallet has no attestation', async () => {
    const lists = async () => (await world.store.maintenance.followedLists(ACME, 10)).length;
    await world.offers({ id: 'card', statusManagement: true, followWalletStatus: false });
    await issue();
    await world.offers({ id: 'card', statusManagement: false });
    await issue();
    await world.issues({ ...wallet.provider.configuration(), walletAttestationRequired: false });
    await world.offers({ id: 'card', statusManagement: true });
    await issue();
    expect(await lists()).to.equal(0);
    await world.offers({ id: 'card', statusManagement: true, followWalletStatus: true });
    await issue();
    expect(await lists()).to.equal(1);
  });

  const expOf = ({ issued }: Awaited<ReturnType<typeof issue>>) =>
    issued.credentials.map(({ credential }) => decode(credential.split('~')[0] ?? '').payload['exp'] as number);

  it('expire before their wallet is no longer maintained', async () => {
    await world.offers({ id: 'card', statusManagement: true, lifeTime: 30 * DAY, keyAttestationsRequired: {} });
    const ends = async (client: number | undefined, store: number | undefined) => {
      const kept = (days: number | undefined) => days && { exp: world.seconds + days * DAY };
      wallet.says = { client_status: { status: wallet.provider.status(3), ...kept(client) } };
      const key = { key_storage_status: { status: wallet.provider.status(4), ...kept(store) } };
      const [exp = 0] = expOf(await issue(await attested(key)));
      return (exp - world.seconds) / DAY;
    };
    expect(await ends(10, 20)).to.be.within(8, 9.9999);
    expect(await ends(20, 5)).to.be.within(3, 4.9999);
    expect(await ends(undefined, undefined)).to.be.within(28, 30);
    expect(await ends(100, 100)).to.be.within(28, 30);
    await world.offers({ id: 'card', statusManagement: true, keyAttestationsRequired: {} });
    expect(await ends(10, undefined), 'also without a lifetime').to.be.within(8, 9.9999);
    const soon = world.seconds + 100;
    wallet.says = { client_status: { status: wallet.provider.status(3), exp: soon } };
    for (const exp of expOf(await issue(await attested({})))) expect(exp).to.be.lessThan(soon);
  });

  it('are not issued after the revocation of the wallet, although the access token is valid', async () => {
    const token = await wallet.token(await anOffer(world));
    revoke(3);
    world.remoteStatusLists.clear(ACME);
    const { code, message } = await failureOf(wallet.issue(token));
    expect([code, message]).to.deep.equal(['invalid_token', 'the wallet is revoked']);
    revoke(3, 0);
    world.remoteStatusLists.clear(ACME);
    expect(await endOf(wallet.issue(token)), 'nothing was spent').to.equal('done');
  });

  it('hide the status of their wallet from the backend', async () => {
    await world.offers({ ...{ id: 'card', statusManagement: true, claims: null }, claimsWebhook: { url: 'https://shop.example/claims' } });
    world.webhooks.answer = { card: { name: 'Ada' } };
    await issue();
    expect(JSON.stringify(world.webhooks.calls)).to.include('claims').and.not.to.include('wallet_statuses');
  });

  it('are deferred, and followed once they are created', async () => {
    await world.offers({ ...{ id: 'card', statusManagement: true, claims: null }, claimsWebhook: { url: 'https://shop.example/claims' } });
    world.webhooks.answer = { deferred: true };
    const { issued } = await issue();
    const id = issued.transaction_id ?? '';
    const caller = await world.caller(ACME);
    expect((await world.decideDeferred.get(caller, id)).walletStatuses).to.have.length(1);
    revoke(3);
    world.remoteStatusLists.clear(ACME);
    const done = () => world.decideDeferred.complete(caller, id, { claims: { name: 'Ada' } });
    expect((await failureOf(done())).code).to.equal('conflict');
    revoke(3, 0);
    world.remoteStatusLists.clear(ACME);
    const { credentials, walletStatuses } = await done();
    expect(walletStatuses).to.equal(null);
    revoke(3);
    expect(await run(LATER)).to.equal(1);
    const made = { issued: { ...issued, credentials: (credentials ?? []).map((credential) => ({ credential })) } };
    expect(await statusOf(made as never)).to.deep.equal([1]);
  });

  it('are revoked by the thousands in bounded steps', async () => {
    const many = 450;
    for (let count = 0; count < 2; count++) await issue();
    const { session } = await issue();
    const now = world.clock.now();
    const [list] = await world.store.maintenance.followedLists(ACME, 1);
    const place = { uri: list?.uri ?? '', anchor: list?.anchor ?? '', listId: list?.id ?? '' };
    wallet.provider.capacity = 1_000;
    for (let count = 0; count < many; count++) {
      // Half of them follow one entry, as with all key stores of a type, and half of them one of their own.
      const idx = count % 2 === 0 ? 3 : 100 + count;
      if (count % 10 === 1) revoke(idx, 0);
      else revoke(idx);
      const statuses = [{ ...place, idx }];
      const follows = { batchId: `more-${count}`, sessionId: session as SessionId, endsAt: null, statuses };
      await world.store.commit(ACME, { follows }, now);
    }
    const steps: number[] = [];
    for (;;) {
      const step = await world.later(LATER, () => follow.execute(world.clock.now()));
      steps.push(step.fallen);
      if (!step.mayBeMore) break;
    }
    expect(Math.max(...steps)).to.equal(200);
    expect(steps.reduce((sum, each) => sum + each, 0)).to.equal(many - many / 10 + 3);
    expect(await run(2 * LATER)).to.equal(0);
  });
});
