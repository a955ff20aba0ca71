import { expect } from 'chai';
import { created, offerBody } from '../../support/populated.ts';
import { type RacedSuite, tally, times } from '../../support/raced-services.ts';
import { newKey, RawWallet } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';
import { WalletProvider } from '../../support/wallet-provider.ts';

const CALLERS = 20;

export const attestedClients: RacedSuite = [
  'Proofs of possession without a challenge',
  (racing) => {
    let provider: WalletProvider;
    before(async () => {
      provider = await WalletProvider.start();
      const { service, token } = racing();
      await created(service, token, '/issuer/config', {
        display: [{ name: 'Acme', locale: 'en' }],
        ...provider.configuration(),
        attestationChallenge: 'optional',
      });
    });
    after(() => provider.close());

    const headers = (key = newKey()) => provider.headers(key, racing().wallet.issuer, undefined);

    it('are accepted once by pushed requests', async () => {
      const { service, token, wallet } = racing();
      const body = { ...offerBody('pid'), flow: 'authorization_code' };
      const { uri } = await created(service, token, '/issuer/offer', body);
      const { grants } = (await wallet.offer(uri)) as {
        grants: { authorization_code: { issuer_state: string } };
      };
      const form = { issuer_state: grants.authorization_code.issuer_state, scope: 'pid' };
      const sent = headers();
      const answers = await times(CALLERS, () => wallet.par(form, sent));
      expect(tally(answers)).to.deep.equal({ 201: 1, '400 invalid_client_attestation': CALLERS - 1 });
      expect((await wallet.par(form, headers())).status).to.equal(201);
    });

    it('are accepted once by token requests with different codes', async () => {
      const { service, token, wallet } = racing();
      const codes = await times(CALLERS, async () =>
        wallet.code((await created(service, token, '/issuer/offer', offerBody('pid'))).uri),
      );
      const sent = headers();
      const wallets = codes.map(() => new RawWallet(service, wallet.tenant));
      const redeem = (index: number) =>
        wallets[index]?.redeem(
          codes[index] ?? '',
          {},
          { ...sent, ...wallets[index].tokenProof() },
        ) as Promise<Answer>;
      const answers = await times(CALLERS, redeem);
      expect(tally(answers)).to.deep.equal({ 200: 1, '400 invalid_client_attestation': CALLERS - 1 });
      // A repeated request of the same wallet with its code needs a new proof, too.
      const winner = answers.findIndex(({ status }) => status === 200);
      expect((await redeem(winner)).body.error).to.equal('invalid_client_attestation');
    });
  },
];
