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
import { AttestedWallet, anOffer, failureOf, outcomeOf, WalletWorld } from '../wallet-kit.ts';

const DAY = 86_400;

describe('credentials that follow their wallet', () => {
  let world: WalletWorld;
  let wallet: AttestedWallet;
  let followWallets: FollowWallets;
  let notifyRevocations: NotifyWalletRevocations;

  beforeEach(async () => {
    world = await WalletWorld.open();
    wallet = await AttestedWallet.make(world);
    await world.putIssuance({ ...wallet.provider.configuration(), batchSize: 5 });
    await world.putCredential({ id: 'card', statusManagement: true, lifeTime: 30 * DAY });
    followWallets = new FollowWallets(world);
    notifyRevocations = new NotifyWalletRevocations(world);
    wallet.attestationClaims = { client_status: { status: wallet.provider.status(3), exp: world.seconds + 10 * DAY } };
  });
  afterEach(() => sinon.restore());

  /** Runs the job until nothing is due. @returns the number of revoked batches. */
  const run = async (after = 0): Promise<number> => {
    let revokedBatches = 0;
    for (;;) {
      const step = await world.afterSeconds(after, () => followWallets.execute(world.clock.now()));
      revokedBatches += step.fallen;
      if (!step.mayBeMore) return revokedBatches;
    }
  };
  const buildProofs = async (claims: object, keys = [newKey()]) => {
    const nonce = await wallet.nonce();
    const text = wallet.provider.keyAttestation(keys, { nonce, payload: { ...claims } });
    return { proofs: { attestation: [text] } };
  };
  const issue = async (changes: object = {}) => {
    const offer = await anOffer(world);
    const response = await wallet.issue(await wallet.token(offer), changes);
    return { issued: response, session: offer.session.id };
  };
  const statusOf = async ({ issued }: Awaited<ReturnType<typeof issue>>) => {
    const statuses = issued.credentials.map(({ credential }) => {
      const { status } = decode(credential.split('~')[0] ?? '').payload as { status: { status_list: { idx: number; uri: string } } };
      return status.status_list;
    });
    const listId = statuses[0]?.uri.split('/').at(-1) ?? '';
    const entries = await world.store.read(ACME).statusEntries(listId, 0);
    return statuses.map(({ idx }) => entries.find(({ index }) => index === idx)?.status ?? 0);
  };
  const revoke = (index: number, status = 1) => {
    wallet.provider.statuses.set(index, status);
  };
  /** The list may be cached for one minute. */
  const LATER = 90;

  it('are revoked with it, at the next fetch of the list', async () => {
    const [first, second] = [await issue(), await issue()];
    wallet.attestationClaims = { client_status: { status: wallet.provider.status(4) } };
    const unaffected = await issue();
    expect(await run()).to.equal(0);
    revoke(3);
    expect(await run(), 'the copy is fresh').to.equal(0);
    expect(await run(LATER)).to.equal(2);
    expect([await statusOf(first), await statusOf(second), await statusOf(unaffected)]).to.deep.equal([[1], [1], [0]]);
    expect(await run(2 * LATER), 'the batches no longer follow an entry').to.equal(0);
  });

  it('are also revoked in a list that another process created concurrently', async () => {
    const issuance = await issue();
    revoke(3);
    const stub = sinon.stub(TenantConfiguration.prototype, 'statusLists').resolves([]);
    expect(await run(LATER)).to.equal(1);
    stub.restore();
    expect(await statusOf(issuance)).to.deep.equal([1]);
  });

  it('stay revoked when the provider reverses the revocation (ARF VCR_04)', async () => {
    const issuance = await issue();
    revoke(3);
    expect(await run(LATER)).to.equal(1);
    revoke(3, 0);
    expect(await run(2 * LATER)).to.equal(0);
    expect(await statusOf(issuance)).to.deep.equal([1]);
    const restoration = world.revokeSession.execute(cachedCaller(await world.caller()), { ...{ sessionId: issuance.session, status: 0 } });
    expect(await outcomeOf(restoration)).to.equal('conflict');
    expect(await statusOf(issuance)).to.deep.equal([1]);
  });

  it('are all revoked as copies of a batch, also by the key storage of their keys', async () => {
    await world.putCredential({ id: 'card', statusManagement: true, keyAttestationsRequired: {} });
    const keys = [newKey(), newKey(), newKey()];
    const status = { key_storage_status: { status: wallet.provider.status(8) } };
    const batch = await issue(await buildProofs(status, keys));
    const unrelated = await issue(await buildProofs({ key_storage_status: { status: wallet.provider.status(9) } }));
    revoke(8);
    expect(await run(LATER)).to.equal(1);
    expect([await statusOf(batch), await statusOf(unrelated)]).to.deep.equal([[1, 1, 1], [0]]);
  });

  it('are unchanged while the wallet is suspended, since revocation is permanent', async () => {
    const issuance = await issue();
    revoke(3, 2);
    expect(await run(LATER)).to.equal(0);
    expect(await statusOf(issuance)).to.deep.equal([0]);
  });

  it('are not revoked while the list is unavailable or has another signer', async () => {
    const issuance = await issue();
    await run();
    revoke(3);
    const { answer } = world.remote;
    const otherSigner = await certify({ name: 'Other', by: wallet.provider.root });
    let sequenceNumber = 1;
    const nextList = (list: object = {}) => wallet.provider.list({ ...list, sequenceNumber: ++sequenceNumber });
    const faults: readonly [string, () => void][] = [
      ['it does not answer', () => (world.remote.answer = () => ({ status: 503, contentType: '', body: Buffer.alloc(0) }))],
      ['another certificate of the provider signs it', () => (wallet.provider.statusSigner = [otherSigner])],
      ['no trust list contains the provider', () => (wallet.provider.published = nextList({ entities: [] }))],
    ];
    let after = LATER;
    for (const [description, breakList] of faults) {
      breakList();
      after += 3_600;
      world.trustLists.clear(ACME);
      expect(await run(after), description).to.equal(0);
      expect(await statusOf(issuance), description).to.deep.equal([0]);
      const [list] = await world.store.maintenance.followedLists(ACME, 10);
      expect(list?.failure?.count, description).to.be.greaterThan(0);
      world.remote.answer = answer;
      wallet.provider.statusSigner = [wallet.provider.revocationSigner];
      wallet.provider.published = nextList();
      world.trustLists.clear(ACME);
    }
    world.remoteStatusLists.clear(ACME);
    expect(await run(after + 3_600), 'it is retried').to.equal(1);
    expect((await world.store.maintenance.followedLists(ACME, 10))[0]?.failure).to.equal(null);
  });

  it('are followed when the provider changed its certificates on the trust list, and by no other provider', async () => {
    const issuance = await issue();
    revoke(3);
    const [nextCa, revoker] = [
      await certify({ name: 'Wallet CA, second', ca: true }),
      await certify({ name: 'Revocation CA, second', ca: true }),
    ];
    const services = [
      { type: 'WalletSolution/Issuance', certificates: [nextCa.certificate] },
      { type: 'WalletSolution/Revocation', certificates: [revoker.certificate] },
    ];
    const { name } = wallet.provider.entity();
    wallet.provider.statusSigner = [await certify({ name: 'Revocation, second', by: revoker })];
    wallet.provider.published = wallet.provider.list({ entities: [{ name: 'Another one', services }] });
    world.trustLists.clear(ACME);
    expect(await run(LATER)).to.equal(0);
    expect(await statusOf(issuance)).to.deep.equal([0]);
    wallet.provider.published = wallet.provider.list({ entities: [{ name, services }], sequenceNumber: 2 });
    world.trustLists.clear(ACME);
    world.remoteStatusLists.clear(ACME);
    expect(await run(LATER + 120)).to.equal(1);
    expect(await statusOf(issuance)).to.deep.equal([1]);
  });

  it('are followed while the provider has an old and a new certificate and signs its lists with the new one', async () => {
    const { root: oldRoot } = wallet.provider;
    const { name } = wallet.provider.entity();
    const listWith = (certificates: readonly { readonly certificate: string }[], sequenceNumber: number) =>
      wallet.provider.list({
        sequenceNumber,
        entities: [{ name, services: [{ type: 'WalletSolution/Issuance', certificates: certificates.map((entry) => entry.certificate) }] }],
      });
    wallet.provider.published = listWith([oldRoot], 2);
    wallet.provider.statusSigner = [await certify({ name: 'Status, first', by: oldRoot })];
    world.trustLists.clear(ACME);
    const issuance = await issue();
    revoke(3);
    const nextCa = await certify({ name: 'Wallet CA, second', ca: true });
    wallet.provider.published = listWith([oldRoot, nextCa], 3);
    wallet.provider.statusSigner = [await certify({ name: 'Status, second', by: nextCa })];
    world.trustLists.clear(ACME);
    world.remoteStatusLists.clear(ACME);
    expect(await run(LATER)).to.equal(1);
    expect(await statusOf(issuance)).to.deep.equal([1]);
  });

  it('are not revoked by a list that is served at another address', async () => {
    const issuance = await issue();
    revoke(3);
    const { answer } = world.remote;
    world.remote.answer = (url) => answer(url.replace('/status/2', '/status/1'));
    wallet.attestationClaims = {};
    const [list] = await world.store.maintenance.followedLists(ACME, 10);
    expect(list?.uri).to.equal(`${wallet.provider.url}/status/1`);
    const swapped = { ...list, uri: `${wallet.provider.url}/status/2` } as NonNullable<typeof list>;
    const now = new Date(world.clock.now().getTime() + LATER * 1000);
    const trust = world.walletProviderTrust.followedList((await world.tenantConfigurations.readStored(ACME)) as never, swapped, now);
    expect(
      await trust.then(
        () => 'accepted',
        (error: Error) => error.message,
      ),
    ).to.equal('status_invalid: sub');
    expect(await statusOf(issuance)).to.deep.equal([0]);
  });

  it('leave an audit entry, an annotation of their session and a webhook call', async () => {
    await world.putCredential({ ...{ id: 'card', statusManagement: true }, notificationWebhook: { url: 'https://shop.example/told' } });
    const issuance = await issue();
    revoke(3);
    expect(await run(LATER)).to.equal(1);
    expect(await notifyRevocations.execute()).to.equal(1);
    expect(await notifyRevocations.execute()).to.equal(0);
    const { issued, session } = issuance;
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
    const notices: RevocationNotice[] = [];
    const publisher = { isReady: true, publishRevocation: async (notice: RevocationNotice) => notices.push(notice) > 0 };
    const asPublisher = (changes: object = {}) => ({ ...publisher, ...changes }) as unknown as EventPublisher;
    beforeEach(() => notices.splice(0));
    const issueRevoked = async () => {
      const issuance = await issue();
      revoke(3);
      await run(LATER);
      return issuance;
    };

    it('are reported once, without data that identifies the holder', async () => {
      const { session } = await issueRevoked();
      expect(await notifyRevocations.execute(asPublisher())).to.equal(2);
      expect(await notifyRevocations.execute(asPublisher())).to.equal(0);
      const [{ batchId, at, ...notice }] = notices as [RevocationNotice];
      expect(notice).to.deep.equal({ tenantId: ACME, sessionId: session, credentialConfigurationId: 'card' });
      expect([notices.length, batchId.length > 10, at instanceof Date]).to.deep.equal([1, true, true]);
    });

    it('wait for the broker, but the webhook does not', async () => {
      const { session } = await issueRevoked();
      expect(await notifyRevocations.execute(asPublisher({ isReady: false }))).to.equal(1);
      expect((await world.session(session)).outcome?.revokedWithWallet).to.have.length(1);
      const failingPublisher = asPublisher({ publishRevocation: () => Promise.reject(new Error('lost')) });
      expect(await notifyRevocations.execute(failingPublisher)).to.equal(0);
      expect(notices).to.deep.equal([]);
      expect(await notifyRevocations.execute(asPublisher())).to.equal(1);
      expect(notices).to.have.length(1);
      expect((await world.session(session)).outcome?.revokedWithWallet, 'once').to.have.length(1);
    });

    it('are not kept for later if there are no subscribers', async () => {
      await issueRevoked();
      await notifyRevocations.execute(asPublisher({ isReady: false }));
      await notifyRevocations.execute();
      expect(await notifyRevocations.execute(asPublisher())).to.equal(0);
      expect(notices).to.deep.equal([]);
    });
  });

  it('are revoked even if their session was removed', async () => {
    const issuance = await issue();
    await world.store.commit(ACME, { removes: issuance.session as SessionId }, world.clock.now());
    revoke(3);
    expect(await run(LATER)).to.equal(1);
    expect(await statusOf(issuance)).to.deep.equal([1]);
    expect(await notifyRevocations.execute()).to.equal(1);
  });

  it('do not follow the wallet if the configuration disables it, or if the wallet has no attestation', async () => {
    const lists = async () => (await world.store.maintenance.followedLists(ACME, 10)).length;
    await world.putCredential({ id: 'card', statusManagement: true, followWalletStatus: false });
    await issue();
    await world.putCredential({ id: 'card', statusManagement: false });
    await issue();
    await world.putIssuance({ ...wallet.provider.configuration(), walletAttestationRequired: false });
    await world.putCredential({ id: 'card', statusManagement: true });
    await issue();
    expect(await lists()).to.equal(0);
    await world.putCredential({ id: 'card', statusManagement: true, followWalletStatus: true });
    await issue();
    expect(await lists()).to.equal(1);
  });

  const expOf = ({ issued }: Awaited<ReturnType<typeof issue>>) =>
    issued.credentials.map(({ credential }) => decode(credential.split('~')[0] ?? '').payload['exp'] as number);

  it('expire before their wallet is no longer maintained', async () => {
    await world.putCredential({ id: 'card', statusManagement: true, lifeTime: 30 * DAY, keyAttestationsRequired: {} });
    const expiryWith = async (client: number | undefined, store: number | undefined) => {
      const statusUntil = (days: number | undefined) => days && { exp: world.seconds + days * DAY };
      wallet.attestationClaims = { client_status: { status: wallet.provider.status(3), ...statusUntil(client) } };
      const key = { key_storage_status: { status: wallet.provider.status(4), ...statusUntil(store) } };
      const [exp = 0] = expOf(await issue(await buildProofs(key)));
      return (exp - world.seconds) / DAY;
    };
    expect(await expiryWith(10, 20)).to.be.within(8, 9.9999);
    expect(await expiryWith(20, 5)).to.be.within(3, 4.9999);
    expect(await expiryWith(undefined, undefined)).to.be.within(28, 30);
    expect(await expiryWith(100, 100)).to.be.within(28, 30);
    await world.putCredential({ id: 'card', statusManagement: true, keyAttestationsRequired: {} });
    expect(await expiryWith(10, undefined), 'also without a lifetime').to.be.within(8, 9.9999);
    const expiry = world.seconds + 100;
    wallet.attestationClaims = { client_status: { status: wallet.provider.status(3), exp: expiry } };
    for (const exp of expOf(await issue(await buildProofs({})))) expect(exp).to.be.lessThan(expiry);
  });

  it('are not issued after the revocation of the wallet, although the access token is valid', async () => {
    const token = await wallet.token(await anOffer(world));
    revoke(3);
    world.remoteStatusLists.clear(ACME);
    const { code, message } = await failureOf(wallet.issue(token));
    expect([code, message]).to.deep.equal(['invalid_token', 'the wallet is revoked']);
    revoke(3, 0);
    world.remoteStatusLists.clear(ACME);
    expect(await outcomeOf(wallet.issue(token)), 'nothing was consumed').to.equal('done');
  });

  it('hide the status of their wallet from the backend', async () => {
    await world.putCredential({
      ...{ id: 'card', statusManagement: true, claims: null },
      claimsWebhook: { url: 'https://shop.example/claims' },
    });
    world.webhooks.answer = { card: { name: 'Ada' } };
    await issue();
    expect(JSON.stringify(world.webhooks.calls)).to.include('claims').and.not.to.include('wallet_statuses');
  });

  it('are deferred, and followed once they are created', async () => {
    await world.putCredential({
      ...{ id: 'card', statusManagement: true, claims: null },
      claimsWebhook: { url: 'https://shop.example/claims' },
    });
    world.webhooks.answer = { deferred: true };
    const { issued } = await issue();
    const id = issued.transaction_id ?? '';
    const caller = await world.caller(ACME);
    expect((await world.decideDeferred.get(caller, id)).walletStatuses).to.have.length(1);
    revoke(3);
    world.remoteStatusLists.clear(ACME);
    const complete = () => world.decideDeferred.complete(caller, id, { claims: { name: 'Ada' } });
    expect((await failureOf(complete())).code).to.equal('conflict');
    revoke(3, 0);
    world.remoteStatusLists.clear(ACME);
    const { credentials, walletStatuses } = await complete();
    expect(walletStatuses).to.equal(null);
    revoke(3);
    expect(await run(LATER)).to.equal(1);
    const revived = { issued: { ...issued, credentials: (credentials ?? []).map((credential) => ({ credential })) } };
    expect(await statusOf(revived as never)).to.deep.equal([1]);
  });

  it('are revoked by the thousands in bounded steps', async () => {
    const total = 450;
    for (let count = 0; count < 2; count++) await issue();
    const { session } = await issue();
    const now = world.clock.now();
    const [list] = await world.store.maintenance.followedLists(ACME, 1);
    const location = { uri: list?.uri ?? '', anchor: list?.anchor ?? '', listId: list?.id ?? '' };
    wallet.provider.capacity = 1_000;
    for (let count = 0; count < total; count++) {
      // One half follows a common entry, like all key stores of a type. The other half follows individual entries.
      const idx = count % 2 === 0 ? 3 : 100 + count;
      if (count % 10 === 1) revoke(idx, 0);
      else revoke(idx);
      const statuses = [{ ...location, idx }];
      const batch = { batchId: `more-${count}`, sessionId: session as SessionId, endsAt: null, statuses };
      await world.store.commit(ACME, { follows: batch }, now);
    }
    const steps: number[] = [];
    for (;;) {
      const step = await world.afterSeconds(LATER, () => followWallets.execute(world.clock.now()));
      steps.push(step.fallen);
      if (!step.mayBeMore) break;
    }
    expect(Math.max(...steps)).to.equal(200);
    expect(steps.reduce((sum, each) => sum + each, 0)).to.equal(total - total / 10 + 3);
    expect(await run(2 * LATER)).to.equal(0);
  });
});
