import { expect } from 'chai';
import { Backend, type BackendCall } from '../../support/backend.ts';
import { createResource, offerBody } from '../../support/populated.ts';
import { callInParallel, countOutcomes, type RaceContext, type RaceSuite } from '../../support/raced-services.ts';
import { newKey, RawWallet } from '../../support/raw-wallet.ts';
import { isSignedWith, rotateWebhookSecret, signaturesOf } from '../../support/signed-calls.ts';
import type { Answer } from '../../support/test-service.ts';
import { WalletProvider } from '../../support/wallet-provider.ts';

const SECRET = 'a-secret-that-is-about-to-go';

/** Access tokens whose client secret is rotated. */
function raceClientSecrets(racing: () => RaceContext): void {
  const client = async (clientId: string) => {
    const { service, token } = racing();
    const json = { clientId, roles: ['issuance:manage', 'issuance:offer'], secret: SECRET };
    const creation = await service.call('POST', '/client', { token, json });
    expect(creation.status, creation.text).to.equal(201);
  };
  const login = async (address: string, client_id: string, client_secret: string) => {
    const response = await fetch(`${address}/oauth2/token`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ grant_type: 'client_credentials', client_id, client_secret }),
    });
    return response.status === 200 ? ((await response.json()) as { access_token: string }).access_token : undefined;
  };
  const OFFER = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['pid'] };
  /** Uses a token at a route that reads the database and at one that uses the cache. */
  const useToken = async (address: string, token: string): Promise<number[]> => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify(OFFER);
    const answers = [
      await fetch(`${address}/issuer/credentials`, { headers }),
      await fetch(`${address}/issuer/offer`, { method: 'POST', headers, body }),
    ];
    return answers.map(({ status }) => status);
  };
  const rotate = async (id: string, query = '') => {
    const { service, token } = racing();
    const answer = await service.call('POST', `/client/${id}/rotate-secret${query}`, { token });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body.secret as string;
  };

  it('end the tokens of a former secret at once in every process, also where they were used before', async () => {
    const { addresses } = racing();
    await client('turning');
    const tokens = await Promise.all(addresses.map((address) => login(address, 'turning', SECRET)));
    for (const address of addresses) {
      for (const token of tokens) expect(await useToken(address, token ?? '')).to.deep.equal([200, 201]);
    }
    const secret = await rotate('turning');
    for (const address of addresses) {
      for (const token of tokens) expect(await useToken(address, token ?? '')).to.deep.equal([401, 401]);
      expect(await login(address, 'turning', SECRET)).to.equal(undefined);
      const newToken = await login(address, 'turning', secret);
      expect(await useToken(address, newToken ?? '')).to.deep.equal([200, 201]);
    }
  });

  it('stay valid for the requested overlap, and end with a second rotation', async () => {
    const { addresses, service, token } = racing();
    await client('graceful');
    const formerToken = (await login(addresses[0] ?? '', 'graceful', SECRET)) ?? '';
    await rotate('graceful', '?graceSeconds=300');
    for (const address of addresses) {
      expect(await useToken(address, formerToken)).to.deep.equal([200, 201]);
      expect(await login(address, 'graceful', SECRET), 'the secret is not valid any more').to.equal(undefined);
    }
    await rotate('graceful', '?graceSeconds=300');
    for (const address of addresses) expect(await useToken(address, formerToken)).to.deep.equal([401, 401]);
    for (const invalidSeconds of ['301', '-1', '1.5', 'x']) {
      const path = `/client/graceful/rotate-secret?graceSeconds=${invalidSeconds}`;
      expect((await service.call('POST', path, { token })).status, invalidSeconds).to.equal(400);
    }
  });

  it('leave no token of the former secret when a login races the rotation', async () => {
    const { addresses } = racing();
    await client('raced');
    const [tokens] = await Promise.all([
      callInParallel(24, (index) => login(addresses[index % addresses.length] ?? '', 'raced', SECRET)),
      rotate('raced'),
    ]);
    for (const formerToken of tokens.filter((candidate) => candidate !== undefined)) {
      for (const address of addresses) expect(await useToken(address, formerToken)).to.deep.equal([401, 401]);
    }
  });
}

export const clientSecrets: RaceSuite = ['concurrent rotations of client secrets', raceClientSecrets];

const WEBHOOK_CALLERS = 24;

export const webhookSecrets: RaceSuite = [
  'concurrent webhook secrets',
  (racing) => {
    let backend: Backend;

    before(async () => {
      backend = await Backend.start();
      backend.on('/claims', { json: { pid: { given_name: 'Ada', family_name: 'Lovelace' } } });
    });
    after(() => backend.close());
    beforeEach(() => backend.clearCalls());

    const readyToken = async () => {
      const { service, token, wallet } = racing();
      const webhook = { url: `${backend.url}/claims` };
      const credentialClaims = { pid: { type: 'webhook', webhook } };
      const json = { ...offerBody('pid'), credentialClaims };
      return wallet.accessToken((await createResource(service, token, '/issuer/offer', json)).uri);
    };
    const issue = async (accessToken: string) => {
      const answer = await racing().wallet.request(accessToken, 'pid');
      expect(answer.status, answer.text).to.equal(200);
    };
    /** Returns the webhook call of a credential request. */
    const nextCall = async (): Promise<BackendCall> => {
      const accessToken = await readyToken();
      backend.clearCalls();
      await issue(accessToken);
      return backend.calls[0] as BackendCall;
    };

    it('keep the last of many that are created simultaneously; only the three before it still sign', async () => {
      const { service, token, addresses } = racing();
      const secrets = await callInParallel(WEBHOOK_CALLERS, () => rotateWebhookSecret(racing()));
      expect(new Set(secrets).size).to.equal(WEBHOOK_CALLERS);
      // The calls are distributed round-robin.
      const states = await callInParallel(addresses.length, () => service.call('GET', '/webhook-secret', { token }));
      for (const { body } of states) {
        expect(body).to.deep.equal(states[0]?.body);
        expect(body.former).to.have.length(3);
      }
      const call = await nextCall();
      expect(signaturesOf(call)).to.equal(4);
      expect(secrets.filter((secret) => isSignedWith(secret, call))).to.have.length(4);
      const lastRotation = await rotateWebhookSecret(racing(), { overlapSeconds: 0 });
      const nextWebhookCall = await nextCall();
      expect(secrets.filter((secret) => isSignedWith(secret, nextWebhookCall))).to.deep.equal([]);
      expect(isSignedWith(lastRotation, nextWebhookCall)).to.equal(true);
    });

    it('are used by the next call of any process', async () => {
      let previousSecret = '';
      for (let attempt = 0; attempt < 6; attempt++) {
        const accessToken = await readyToken();
        const secret = await rotateWebhookSecret(racing(), { overlapSeconds: 0 });
        backend.clearCalls();
        await issue(accessToken);
        const call = backend.calls[0] as BackendCall;
        expect([isSignedWith(secret, call), signaturesOf(call)]).to.deep.equal([true, 1]);
        if (previousSecret !== '') expect(isSignedWith(previousSecret, call)).to.equal(false);
        previousSecret = secret;
      }
    });

    it('sign all calls while they are being replaced', async () => {
      const activeSecret = await rotateWebhookSecret(racing(), { overlapSeconds: 0 });
      const tokens = await callInParallel(WEBHOOK_CALLERS, readyToken);
      backend.clearCalls();
      const calls = tokens.map(issue);
      const secrets = await callInParallel(3, () => rotateWebhookSecret(racing()));
      await Promise.all(calls);
      expect(backend.calls).to.have.length(WEBHOOK_CALLERS);
      for (const call of backend.calls) expect(isSignedWith(activeSecret, call)).to.equal(true);
      const lastCall = await nextCall();
      for (const secret of [activeSecret, ...secrets]) expect(isSignedWith(secret, lastCall)).to.equal(true);
    });
  },
];

const ATTESTED_CALLERS = 20;

export const attestedClients: RaceSuite = [
  'concurrent proofs of possession without a challenge',
  (racing) => {
    let provider: WalletProvider;
    before(async () => {
      provider = await WalletProvider.start();
      const { service, token } = racing();
      await createResource(service, token, '/issuer/config', {
        display: [{ name: 'Acme', locale: 'en' }],
        ...provider.configuration(),
        attestationChallenge: 'optional',
      });
    });
    after(() => provider.close());

    const headers = (key = newKey()) => provider.headers(key, racing().wallet.issuer, undefined);

    it('are accepted once by pushed authorization requests', async () => {
      const { service, token, wallet } = racing();
      const body = { ...offerBody('pid'), flow: 'authorization_code' };
      const { uri } = await createResource(service, token, '/issuer/offer', body);
      const { grants } = (await wallet.offer(uri)) as { grants: { authorization_code: { issuer_state: string } } };
      const form = { issuer_state: grants.authorization_code.issuer_state, scope: 'pid' };
      const requestHeaders = headers();
      const answers = await callInParallel(ATTESTED_CALLERS, () => wallet.par(form, requestHeaders));
      expect(countOutcomes(answers)).to.deep.equal({ 201: 1, '400 invalid_client_attestation': ATTESTED_CALLERS - 1 });
      expect((await wallet.par(form, headers())).status).to.equal(201);
    });

    it('are accepted once by token requests with different codes', async () => {
      const { service, token, wallet } = racing();
      const codes = await callInParallel(ATTESTED_CALLERS, async () =>
        wallet.code((await createResource(service, token, '/issuer/offer', offerBody('pid'))).uri),
      );
      const requestHeaders = headers();
      const wallets = codes.map(() => new RawWallet(service, wallet.tenant));
      const redeem = (index: number) =>
        wallets[index]?.redeem(codes[index] ?? '', {}, { ...requestHeaders, ...wallets[index].tokenProof() }) as Promise<Answer>;
      const answers = await callInParallel(ATTESTED_CALLERS, redeem);
      expect(countOutcomes(answers)).to.deep.equal({ 200: 1, '400 invalid_client_attestation': ATTESTED_CALLERS - 1 });
      // A repeated token request of the same wallet needs a new proof, too.
      const winner = answers.findIndex(({ status }) => status === 200);
      expect((await redeem(winner)).body.error).to.equal('invalid_client_attestation');
    });
  },
];
