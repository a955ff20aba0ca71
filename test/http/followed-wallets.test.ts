import { expect } from 'chai';
import { FollowWallets } from '../../application/oauth/follow-wallets.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Store } from '../../application/ports/store.ts';
import { obtain, resolve } from '../../bootstrap/wiring/wire.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { httpDatabases, type TestDatabase } from '../support/databases.ts';
import { createResource } from '../support/populated.ts';
import { decode } from '../support/present.ts';
import { dpopProof, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const ACME = 'acme' as TenantId;
const display = [{ name: 'Issuer', locale: 'en' }];

for (const kind of httpDatabases()) {
  describe(`Credentials of a revoked wallet, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let provider: WalletProvider;
    let token: string;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      provider = await WalletProvider.start();
      service = await startTestService({ DATABASE_URL: database.url });
      ({ token } = await createTenant(service, ACME));
      await createResource(service, token, '/issuer/config', { display, batchSize: 3, ...provider.configuration() });
      await createResource(service, token, '/issuer/credentials', {
        ...{ id: 'pid', vct: 'urn:pid:1', claims: { name: 'Ada' }, statusManagement: true },
        ...{ config: { format: 'dc+sd-jwt', display }, lifeTime: 864_000, keyAttestationsRequired: {} },
      });
    });
    after(async () => {
      await service?.close();
      await provider?.close();
      await database?.drop();
    });

    const offer = () =>
      createResource(service, token, '/issuer/offer', {
        ...{ response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['pid'] },
      });
    const challenge = async () => (await service.call('POST', '/acme/challenge')).body.attestation_challenge;
    /** A wallet unit of the provider comes for an offer. @param idx of the wallet in the provider's list. */
    const collect = async (idx: number, keyIdx: number, { uri }: { uri: string }) => {
      const wallet = new RawWallet(service, ACME);
      const issuer = `${service.address}/acme`;
      const kept = { exp: Math.floor(Date.now() / 1000) + 2_678_400 };
      const payload = { client_status: { status: provider.status(idx), ...kept } };
      const redeemed = await service.call('POST', '/acme/token', {
        form: {
          grant_type: 'urn:ietf:params:oauth:grant-type:pre-authorized_code',
          'pre-authorized_code': await wallet.code(uri),
          client_id: provider.clientId,
        },
        headers: {
          DPoP: dpopProof(wallet.dpopKey, `${issuer}/token`),
          ...provider.headers(newKey(), issuer, await challenge(), { attestation: { payload } }),
        },
      });
      if (redeemed.status !== 200) return redeemed;
      const [nonce, keys] = [await wallet.nonce(), [newKey(), newKey()] as const];
      const says = { key_storage_status: { status: provider.status(keyIdx), ...kept } };
      const key_attestation = provider.keyAttestation(keys, { nonce, payload: says });
      const header = { jwk: undefined, key_attestation };
      const jwt = [keyProof(keys[0], issuer, nonce, { header })];
      const body = { credential_configuration_id: 'pid', proofs: { jwt } };
      return wallet.request(redeemed.body.access_token, 'pid', { body });
    };
    const statusesOf = async (answer: Awaited<ReturnType<typeof collect>>) => {
      const entries = (answer.body.credentials as { credential: string }[]).map(({ credential }) => {
        const { status } = decode(credential.split('~')[0] ?? '').payload as { status: { status_list: { idx: number; uri: string } } };
        return status.status_list;
      });
      const listId = entries[0]?.uri.split('/').at(-1) ?? '';
      const all = await service.service.container.get(Store).read(ACME).statusEntries(listId, 0);
      return entries.map(({ idx }) => all.find(({ index }) => index === idx)?.status ?? 0);
    };
    /** What the jobs do when so many seconds have passed. */
    const jobs = async (seconds: number) => {
      const { container } = service.service;
      const clock = container.get(Clock);
      const now = clock.now.bind(clock);
      clock.now = () => new Date(now().getTime() + seconds * 1000);
      try {
        // Another process does the same at the same moment.
        const both = [obtain(container, FollowWallets), new FollowWallets(resolve(container, FollowWallets.needs))];
        const steps = () => Promise.all(both.map((job) => job.execute(clock.now())));
        for (;;) if (!(await steps()).some(({ mayBeMore }) => mayBeMore)) return;
      } finally {
        clock.now = now;
      }
    };

    it('are revoked together with the wallet and with its key storage; other credentials are not', async () => {
      const answers = [await collect(1, 50, await offer()), await collect(2, 50, await offer())];
      const last = await collect(3, 51, await offer());
      for (const { status, text } of [...answers, last]) expect(status, text).to.equal(200);
      const [one, other] = answers;
      if (one === undefined || other === undefined) throw new Error('nothing was issued');
      provider.statuses.set(1, 1);
      await jobs(90);
      expect([await statusesOf(one), await statusesOf(other), await statusesOf(last)]).to.deep.equal([
        [1, 1],
        [0, 0],
        [0, 0],
      ]);
      // The whole type of key stores
      provider.statuses.set(50, 1);
      await jobs(180);
      expect([await statusesOf(other), await statusesOf(last)]).to.deep.equal([
        [1, 1],
        [0, 0],
      ]);
      const { body } = await service.call('GET', '/audit-log?kind=wallet-status-list', { token });
      const told = new Set(body.map((entry: { target: string; action: string }) => `${entry.action} ${entry.target}`));
      expect([...told]).to.deep.equal([`revoked ${provider.url}/status/1`]);
    });

    it('show the status list of the wallet, and since when it is unavailable', async () => {
      const lists = async () => (await service.call('GET', '/cache/stats', { token })).body.followedStatusLists;
      const [list] = await lists();
      expect([list.uri, list.failure]).to.deep.equal([`${provider.url}/status/1`, null]);
      const { statusSigner } = provider;
      provider.statusSigner = [provider.signer];
      await jobs(400);
      expect((await lists())[0].failure).to.include({ reason: 'status_invalid: signer' });
      provider.statusSigner = statusSigner;
      const health = await service.call('GET', '/health');
      expect(health.status, 'for less than an hour').to.equal(200);
    });

    it('expire before the retention of their status ends, and a revoked wallet gets no new ones', async () => {
      const refused = await collect(1, 51, await offer());
      expect([refused.status, refused.body.error]).to.deep.equal([400, 'invalid_client_attestation']);
    });
  });
}
