import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { httpDatabases, type TestDatabase } from '../support/databases.ts';
import { startTestService, type TestService } from '../support/test-service.ts';
import { readableClaims, type StoredCredential } from '../wallets/openid4vc/credentials.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';

const KEY = 'the-key-of-the-ministry';
const CITIZEN = {
  given_name: 'Ada',
  family_name: 'Lovelace',
  birthdate: '1990-12-10',
  age_over_18: true,
  address: { street_address: '12 St James Square', locality: 'London', country: 'GB' },
  nationalities: ['GB'],
};

/** The files that the demonstration and the documentation use. */
function example(file: string, backend: Backend): Record<string, unknown> {
  const text = readFileSync(new URL(`../../config/examples/demo/${file}`, import.meta.url), 'utf8');
  const values: Record<string, string> = { DEMO_BACKEND: backend.url, DEMO_API_KEY: KEY };
  return JSON.parse(text.replaceAll(/\$\{([A-Z_]+)\}/g, (_, placeholder: string) => values[placeholder] ?? ''));
}

for (const { name, open } of httpDatabases()) {
  describe(`complete flow with an independent wallet, on ${name}`, () => {
    let database: TestDatabase | undefined;
    let backend: Backend;
    let service: TestService;
    let token: string;

    before(async function () {
      database = await open();
      if (database === undefined) return this.skip();
      backend = await Backend.start();
      backend.on('/claims', (response, call) => response.end(JSON.stringify({ [call.body.credential_configuration_id]: CITIZEN })));
      service = await startTestService({ DATABASE_URL: database.url });
      const json = example('tenant.json', backend);
      const root = await service.rootToken();
      expect((await service.call('POST', '/tenant', { token: root, json })).status).to.equal(201);
      const { secret } = (await service.call('GET', '/client/demo-admin/secret', { token: root })).body;
      token = await service.token('demo-admin', secret);
      const files = {
        '/issuer/config': example('issuance/config.json', backend),
        '/issuer/credentials': example('issuance/credentials/pid.json', backend),
        '/verifier/config': example('presentation/age-check.json', backend),
      };
      for (const [path, body] of Object.entries(files)) {
        const written = await service.call('POST', path, { token, json: body });
        expect(written.status, written.text).to.equal(201);
      }
      const plain = { ...files['/verifier/config'], id: 'age-check-plain', responseMode: 'direct_post' };
      expect((await service.call('POST', '/verifier/config', { token, json: plain })).status).to.equal(201);
    });
    after(async () => {
      await service?.close();
      await backend?.close();
      await database?.drop();
    });
    beforeEach(() => backend.clearCalls());

    const session = async (id: string) => (await service.call('GET', `/session/${id}`, { token })).body;
    const offer = async (more: object = {}): Promise<{ uri: string; session: string }> => {
      const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['pid'], ...more };
      const answer = await service.call('POST', '/issuer/offer', { token, json });
      expect(answer.status, answer.text).to.equal(201);
      return answer.body;
    };
    const request = async (requestId: string): Promise<{ uri: string; session: string }> => {
      const json = { response_type: 'uri', requestId };
      const answer = await service.call('POST', '/verifier/offer', { token, json });
      expect(answer.status, answer.text).to.equal(201);
      return answer.body;
    };
    const failureOf = async (attempt: Promise<unknown>): Promise<string> =>
      attempt.then(
        () => 'nothing',
        (error: Error & { response?: unknown }) => `${error.message} ${JSON.stringify(error)}`,
      );

    it('gets a credential with a transaction code, once', async () => {
      const wallet = new Openid4vcWallet();
      const { uri, session: id } = await offer({ tx_code: '493536', tx_code_description: 'By letter' });
      expect((await session(id)).status).to.equal('active');

      expect(await failureOf(wallet.accept(uri, { txCode: '000000' }))).to.include('invalid_grant');
      expect((await session(id)).status).to.equal('fetched');
      expect(backend.calls, 'nothing is asked before the code is right').to.have.length(0);

      const [credential] = await wallet.accept(uri, { txCode: '493536' });
      expect(readableClaims(credential?.text ?? '')).to.deep.equal(CITIZEN);
      expect(backend.calls).to.have.length(1);
      const [call] = backend.callsTo('/claims');
      expect(call?.body).to.deep.equal({ session: id, credential_configuration_id: 'pid', identity: {}, credentials: [] });
      expect(call?.headers).to.include({ 'content-type': 'application/json', 'x-api-key': KEY });
      const completed = await session(id);
      expect(completed).to.include({ status: 'completed', kind: 'issuance' });
      expect(completed.deliveries.map((delivery: { result: string }) => delivery.result)).to.deep.equal(['delivered']);
      expect(JSON.stringify(completed), 'the code is nowhere').to.not.include('493536');

      expect(await failureOf(wallet.accept(uri, { txCode: '493536' }))).to.include('invalid_grant');
      expect((await session(id)).status).to.equal('completed');
    });

    for (const configuration of ['age-check', 'age-check-plain']) {
      it(`presents the credential, and is rejected after its revocation, with ${configuration}`, async () => {
        const wallet = new Openid4vcWallet();
        const issued = await offer();
        const [credential] = await wallet.accept(issued.uri);
        backend.clearCalls();

        const first = await request(configuration);
        expect((await session(first.session)).status).to.equal('active');
        const read = await wallet.readRequest(first.uri);
        const mode = configuration === 'age-check' ? 'direct_post.jwt' : 'direct_post';
        expect(read.payload['response_mode']).to.equal(mode);
        expect((await session(first.session)).status).to.equal('fetched');
        const accepted = await wallet.present(read, credential as StoredCredential);
        expect(accepted.status, JSON.stringify(accepted.body)).to.equal(200);
        const redirect = new URL(String(accepted.body['redirect_uri']));
        expect(redirect.origin + redirect.pathname).to.equal('https://shop.example/done');
        expect(redirect.searchParams.get('session')).to.equal(first.session);
        expect(redirect.searchParams.get('response_code')).to.match(/^[\w-]{22,}$/);

        const values = { given_name: 'Ada', age_over_18: true };
        const { credentials } = backend.calls[0]?.body ?? {};
        expect(credentials).to.have.length(1);
        expect(credentials[0].values).to.deep.include(values).and.not.have.any.keys('cnf', 'status');
        expect(backend.calls.map(({ path, body }) => ({ path, body }))).to.deep.equal([
          { path: '/presented', body: { session: first.session, credentials } },
        ]);
        expect(backend.calls[0]?.headers['x-api-key']).to.equal(KEY);
        const verified = await session(first.session);
        expect(verified.status).to.equal('completed');
        expect(verified.credentials).to.deep.equal(credentials);

        const again = await wallet.present(read, credential as StoredCredential);
        expect(again.status, 'one answer per request').to.equal(400);
        expect((await session(first.session)).status).to.equal('completed');

        const revoke = { sessionId: issued.session, status: 1 };
        const revoked = await service.call('POST', '/session/revoke', { token, json: revoke });
        expect(revoked.status, revoked.text).to.equal(201);

        backend.clearCalls();
        const second = await request(configuration);
        const refused = await wallet.present(await wallet.readRequest(second.uri), credential as StoredCredential);
        expect(refused.status).to.equal(400);
        expect(refused.body['error']).to.equal('invalid_request');
        expect(JSON.stringify(refused.body), 'the wallet learns no reason').to.not.include('revoked');
        const failed = await session(second.session);
        expect(failed.status).to.equal('failed');
        expect(failed.failure.message).to.include('status_revoked');
        expect(failed).to.not.have.property('credentials');
        expect(backend.calls).to.have.length(1);
        const told = backend.calls[0]?.body;
        expect(Object.keys(told).sort()).to.deep.equal(['credentials', 'session']);
        expect(told.session).to.equal(second.session);
        expect(told.credentials).to.have.length(1);
        expect(Object.keys(told.credentials[0]).sort()).to.deep.equal(['error', 'id']);
        expect(told.credentials[0].error).to.be.a('string').that.includes('revoked');
        expect((await session(issued.session)).status, 'issuance stays what it was').to.equal('completed');
      });
    }
  });
}
