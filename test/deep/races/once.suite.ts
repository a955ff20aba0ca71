import { expect } from 'chai';
import { created, offerBody, presentationBody } from '../../support/populated.ts';
import { answerOf, fetchRequest } from '../../support/presenter.ts';
import { type RacedSuite, readySessions, tally, times } from '../../support/raced-services.ts';
import { newKey, RawWallet } from '../../support/raw-wallet.ts';

const CALLERS = 50;

function vctOf(credential: string): string {
  return JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString()).vct;
}

function grantOf(accessToken: string): string {
  return JSON.parse(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString()).grant_id;
}

export const usedOnce: RacedSuite = [
  'What can be used once',
  (racing) => {
    it('is redeemed once: a pre-authorized code', async () => {
      const { service, token, wallet } = racing();
      for (let round = 0; round < 3; round++) {
        const { uri } = await created(service, token, '/issuer/offer', offerBody('pid'));
        const code = await wallet.code(uri);
        const wallets = Array.from({ length: CALLERS }, () => new RawWallet(service, wallet.tenant));
        const answers = await Promise.all(wallets.map((one) => one.redeem(code)));
        expect(tally(answers)).to.deep.equal({ 200: 1, '400 invalid_grant': CALLERS - 1 });
        // The others took nothing away from the one that was first.
        const issued = await Promise.all(
          wallets.map((one, index) => one.request(answers[index]?.body.access_token ?? 'none', 'pid')),
        );
        expect(tally(issued)).to.deep.equal({ 200: 1, '401 invalid_token': CALLERS - 1 });
      }
    });

    it('is one grant for one wallet, however often it asks: a pre-authorized code', async () => {
      const { service, token, wallet } = racing();
      const { uri } = await created(service, token, '/issuer/offer', offerBody('pid'));
      const code = await wallet.code(uri);
      const answers = await times(CALLERS, () => wallet.redeem(code));
      expect(tally(answers)).to.deep.equal({ 200: CALLERS });
      const grants = answers.map(({ body }) => [grantOf(body.access_token), body.refresh_token].join(' '));
      expect(new Set(grants).size).to.equal(1);
      const last = answers.at(-1)?.body.access_token;
      expect((await wallet.request(last, 'pid')).status).to.equal(200);
      expect(tally(await times(CALLERS, () => wallet.redeem(code)))).to.deep.equal({
        '400 invalid_grant': CALLERS,
      });
    });

    it('is used once by 50 sessions: a nonce', async () => {
      const { wallet } = racing();
      const sessions = await readySessions(racing(), CALLERS);
      const nonce = await wallet.nonce();
      const answers = await times(CALLERS, (index) =>
        wallet.request(sessions[index]?.accessToken ?? '', 'pid', { nonce }),
      );
      expect(tally(answers)).to.deep.equal({ 200: 1, '400 invalid_nonce': CALLERS - 1 });
      // Whoever came too late is served with a nonce of its own.
      const again = await times(CALLERS, (index) =>
        wallet.request(sessions[index]?.accessToken ?? '', 'pid'),
      );
      expect(tally(again)).to.deep.equal({ 200: CALLERS });
    });

    it('is used once with 50 nonces: a DPoP proof', async () => {
      const { wallet } = racing();
      const [session] = await readySessions(racing(), 1);
      const headers = wallet.authorization(session?.accessToken ?? '');
      const nonces = await times(CALLERS, () => wallet.nonce());
      const answers = await times(CALLERS, (index) =>
        wallet.request('', 'pid', { headers, nonce: nonces[index] ?? '' }),
      );
      expect(tally(answers)).to.deep.equal({ 200: 1, '401 invalid_dpop_proof': CALLERS - 1 });
    });

    it('is answered once: a presentation request', async () => {
      const { service, token, wallet } = racing();
      const holder = newKey();
      const [session] = await readySessions(racing(), 1);
      const issued = await wallet.request(session?.accessToken ?? '', 'pid', { key: holder });
      const credential = issued.body.credentials[0].credential as string;
      const { webhook: _webhook, ...question } = presentationBody('question', 'signing');
      const credentials = [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: [vctOf(credential)] } }];
      await created(service, token, '/verifier/config', { ...question, dcql_query: { credentials } });
      for (let round = 0; round < 3; round++) {
        const json = { response_type: 'uri', requestId: 'question' };
        const offer = await created(service, token, '/verifier/offer', json);
        const request = await fetchRequest(service, offer.uri);
        const forms = await times(CALLERS, () => answerOf(request, credential, holder));
        const answers = await times(CALLERS, (index) =>
          service.call('POST', request.response_uri, { form: forms[index] ?? {} }),
        );
        expect(tally(answers), answers[0]?.text).to.deep.equal({
          200: 1,
          '400 invalid_request': CALLERS - 1,
        });
        const seen = await service.call('GET', `/session/${offer.session}`, { token });
        expect(seen.body.status, seen.text).to.equal('completed');
        expect(seen.body.credentials).to.have.length(1);
      }
    });

    it('is handed over once: the secret of a client', async () => {
      const { service, token } = racing();
      await created(service, token, '/client', { clientId: 'picked', roles: ['issuance:offer'] });
      const answers = await times(20, () => service.call('GET', '/client/picked/secret', { token }));
      expect(tally(answers)).to.deep.equal({ 200: 1, '410 gone': 19 });
    });
  },
];
