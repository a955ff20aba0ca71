import { expect } from 'chai';
import { Backend, type BackendCall } from '../../support/backend.ts';
import { created, offerBody } from '../../support/populated.ts';
import { type RacedSuite, times } from '../../support/raced-services.ts';
import { isSignedWith, rotateWebhookSecret, signaturesOf } from '../../support/signed-calls.ts';

const CALLERS = 24;

export const webhookSecrets: RacedSuite = [
  'The secret of webhooks',
  (racing) => {
    let backend: Backend;

    before(async () => {
      backend = await Backend.start();
      backend.on('/claims', { json: { pid: { given_name: 'Ada', family_name: 'Lovelace' } } });
    });
    after(() => backend.close());
    beforeEach(() => backend.forget());

    const readyToken = async () => {
      const { service, token, wallet } = racing();
      const webhook = { url: `${backend.url}/claims` };
      const credentialClaims = { pid: { type: 'webhook', webhook } };
      const json = { ...offerBody('pid'), credentialClaims };
      return wallet.accessToken((await created(service, token, '/issuer/offer', json)).uri);
    };
    const issue = async (accessToken: string) => {
      const answer = await racing().wallet.request(accessToken, 'pid');
      expect(answer.status, answer.text).to.equal(200);
    };
    /** The call that a credential request leads to. */
    const nextCall = async (): Promise<BackendCall> => {
      const accessToken = await readyToken();
      backend.forget();
      await issue(accessToken);
      return backend.calls[0] as BackendCall;
    };

    it('is the last of many that are made at once; the three before it sign still, and no other', async () => {
      const { service, token, addresses } = racing();
      const secrets = await times(CALLERS, () => rotateWebhookSecret(racing()));
      expect(new Set(secrets).size).to.equal(CALLERS);
      // The calls go to the processes in turn.
      const states = await times(addresses.length, () => service.call('GET', '/webhook-secret', { token }));
      for (const { body } of states) {
        expect(body).to.deep.equal(states[0]?.body);
        expect(body.former).to.have.length(3);
      }
      const call = await nextCall();
      expect(signaturesOf(call)).to.equal(4);
      expect(secrets.filter((secret) => isSignedWith(secret, call))).to.have.length(4);
      const last = await rotateWebhookSecret(racing(), { overlapSeconds: 0 });
      const alone = await nextCall();
      expect(secrets.filter((secret) => isSignedWith(secret, alone))).to.deep.equal([]);
      expect(isSignedWith(last, alone)).to.equal(true);
    });

    it('is the new one in the next call, whichever process makes it', async () => {
      let before = '';
      for (let round = 0; round < 6; round++) {
        const accessToken = await readyToken();
        const secret = await rotateWebhookSecret(racing(), { overlapSeconds: 0 });
        backend.forget();
        await issue(accessToken);
        const call = backend.calls[0] as BackendCall;
        expect([isSignedWith(secret, call), signaturesOf(call)]).to.deep.equal([true, 1]);
        if (before !== '') expect(isSignedWith(before, call)).to.equal(false);
        before = secret;
      }
    });

    it('goes on signing in all calls while it is being replaced', async () => {
      const known = await rotateWebhookSecret(racing(), { overlapSeconds: 0 });
      const tokens = await times(CALLERS, readyToken);
      backend.forget();
      const calls = tokens.map(issue);
      const secrets = await times(3, () => rotateWebhookSecret(racing()));
      await Promise.all(calls);
      expect(backend.calls).to.have.length(CALLERS);
      for (const call of backend.calls) expect(isSignedWith(known, call)).to.equal(true);
      const last = await nextCall();
      for (const secret of [known, ...secrets]) expect(isSignedWith(secret, last)).to.equal(true);
    });
  },
];
