import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { ChainedWorld, withClockAdvanced } from '../support/chained-world.ts';
import { httpDatabases, rawSql, type TestDatabase } from '../support/databases.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const EVIL = 'https://evil.example/take?all=this';

describe('authorization page of the built-in server', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    wallet = new RawWallet(service, 'acme');
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
    const card = { id: 'card', config, vct: 'urn:card:1', claims: { name: 'Ada' } };
    await createResource(service, token, '/issuer/credentials', card);
    await configure({});
  });
  after(() => service.close());

  const configure = async (more: object) => {
    const json = { display: [{ name: 'Acme', locale: 'en' }], ...more };
    expect((await service.call('POST', '/issuer/config', { token, json })).status).to.equal(201);
  };
  const push = async (form: Record<string, string> = {}) => {
    const body = { ...offerBody('card'), flow: 'authorization_code' };
    const { uri } = await createResource(service, token, '/issuer/offer', body);
    return wallet.push(uri, 'card', form);
  };
  const open = (request_uri: string) =>
    service.call('GET', `/acme/authorize?${new URLSearchParams({ client_id: CLIENT_ID, request_uri })}`);
  const press = (request_uri: string, page: Answer, decision = 'approve') => {
    const [, decision_token = ''] = /name="decision_token" value="([^"]+)"/.exec(page.text) ?? [];
    const form = { client_id: CLIENT_ID, request_uri, decision, decision_token };
    return service.call('POST', '/acme/authorize', { form });
  };
  const codeIn = (answer: Answer) => new URL(answer.headers.get('location') ?? 'nowhere:').searchParams.get('code');

  describe('that was opened in time', () => {
    it('is shown again and can be approved until the authorization expires', async () => {
      const requestUri = await push();
      const page = await open(requestUri);
      expect(page.status).to.equal(200);
      const reloaded = await withClockAdvanced(61, () => open(requestUri));
      expect(reloaded.status, 'a reload').to.equal(200);
      expect((await withClockAdvanced(1790, () => open(requestUri))).status, 'a late reload').to.equal(200);
      const answer = await withClockAdvanced(1790, () => press(requestUri, page));
      expect(answer.status, answer.text).to.equal(303);
      expect(codeIn(answer)).to.be.a('string');
    });

    it('returns an error once the authorization has expired', async () => {
      const requestUri = await push();
      const page = await open(requestUri);
      expect((await withClockAdvanced(1801, () => open(requestUri))).status).to.equal(400);
      const answer = await withClockAdvanced(1801, () => press(requestUri, page));
      expect([answer.status, answer.headers.get('location')]).to.deep.equal([400, null]);
    });

    it('returns an error after the decision', async () => {
      const requestUri = await push();
      const page = await open(requestUri);
      expect((await press(requestUri, page, 'deny')).status).to.equal(303);
      expect((await open(requestUri)).status).to.equal(400);
      expect((await press(requestUri, page)).status).to.equal(400);
    });

    it('is the same page for concurrent requests', async () => {
      const requestUri = await push();
      const pages = await Promise.all(Array.from({ length: 20 }, () => open(requestUri)));
      expect(pages.map(({ status }) => status)).to.deep.equal(Array(20).fill(200));
      const [page] = pages;
      expect(page && codeIn(await press(requestUri, page))).to.be.a('string');
    });
  });

  it('cannot be opened for the first time after the announced minute', async () => {
    const requestUri = await push();
    expect((await withClockAdvanced(61, () => open(requestUri))).status).to.equal(400);
    expect((await withClockAdvanced(59, () => open(requestUri))).status).to.equal(200);
  });

  describe('shows the user', () => {
    it('that the wallet is not authenticated, and the target of the redirect', async () => {
      const page = await open(await push({ redirect_uri: EVIL }));
      expect(page.text).to.include('not verified').and.include('<strong id="destination">evil.example</strong>');
      expect(page.text).to.include(CLIENT_ID);
    });

    const destinations: readonly [string, string][] = [
      ['https://xn--pypal-4ve.example:8443/cb', 'xn--pypal-4ve.example:8443'],
      ['http://127.0.0.1:4711/cb', '127.0.0.1:4711'],
      ['eudi-openid4ci://login.bank.example', 'eudi-openid4ci:'],
      ['com.example.wallet:/cb', 'com.example.wallet:'],
    ];
    for (const [redirect_uri, destination] of destinations) {
      it(`${destination} for ${redirect_uri}`, async () => {
        const page = await open(await push({ redirect_uri }));
        expect(page.text).to.include(`<strong id="destination">${destination}</strong>`);
      });
    }

    it('the client name as escaped text', async () => {
      const client_id = '<script>alert(1)</script>"\'&';
      const body = { ...offerBody('card'), flow: 'authorization_code' };
      const { uri } = await createResource(service, token, '/issuer/offer', body);
      const request_uri = await wallet.push(uri, 'card', { client_id });
      const query = new URLSearchParams({ client_id, request_uri });
      const page = await service.call('GET', `/acme/authorize?${query}`);
      expect(page.status).to.equal(200);
      expect(page.text).to.include('&#60;script&#62;alert(1)').and.not.include('<script');
    });

    it('no such warning for an authenticated wallet', async () => {
      const provider = await WalletProvider.start();
      try {
        await configure(provider.configuration());
        const body = { ...offerBody('card'), flow: 'authorization_code' };
        const { uri } = await createResource(service, token, '/issuer/offer', body);
        const { grants } = (await wallet.offer(uri)) as { grants: { authorization_code: { issuer_state: string } } };
        const challenge = (await service.call('POST', '/acme/challenge')).body.attestation_challenge;
        const { issuer_state } = grants.authorization_code;
        const pushed = await wallet.par({ issuer_state, scope: 'card' }, provider.headers(newKey(), wallet.issuer, challenge));
        expect(pushed.status, pushed.text).to.equal(201);
        const page = await open(pushed.body.request_uri);
        expect(page.text).to.not.include('not verified');
        expect(page.text).to.include('<strong id="destination">wallet.example</strong>');
      } finally {
        await configure({});
        await provider.close();
      }
    });
  });
});

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
};
const OFFER = { response_type: 'uri', flow: 'authorization_code', credentialConfigurationIds: ['card'] };

/** A database that ends a clean-up in its midst. */
const REFUSED_DOCUMENTS = {
  sqlite: {
    make: [`create trigger stop before update of document on grants begin select raise(abort, 'stopped'); end`],
    remove: ['drop trigger stop'],
  },
  postgres: {
    make: [
      `create function stop() returns trigger language plpgsql as $$ begin raise exception 'stopped'; end $$`,
      'create trigger stop before update of document on grants for each row execute function stop()',
    ],
    remove: ['drop trigger stop on grants', 'drop function stop'],
  },
} as const;

for (const { name, open } of httpDatabases()) {
  describe(`the authorization request of a session, on ${name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let token: string;

    before(async function () {
      database = await open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      ({ token } = await createTenant(service, 'acme'));
      await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
      await call('POST', '/issuer/credentials', CARD);
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    const call = async (method: string, path: string, json?: object) => {
      const answer = await service.call(method, path, { token, ...(json && { json }) });
      expect(answer.status, answer.text).to.be.within(200, 201);
      return answer.body;
    };
    const run = (...statements: readonly string[]) =>
      rawSql(database?.url ?? '', async (each) => {
        let rows: readonly unknown[] = [];
        for (const statement of statements) rows = await each(statement);
        return rows;
      });
    const offered = () => call('POST', '/issuer/offer', OFFER);
    const seen = async (session: string) => {
      const { authorization_code, auth_queries } = await call('GET', `/session/${session}`);
      return { authorization_code, auth_queries };
    };
    const stateOf = async (wallet: RawWallet, uri: string) => {
      const { grants } = (await wallet.offer(uri)) as { grants: { authorization_code: { issuer_state: string } } };
      return grants.authorization_code.issuer_state;
    };

    it('contains the parameters that the wallet sent, and the code once it is redeemed', async () => {
      const { uri, session } = await offered();
      const wallet = new RawWallet(service, 'acme');
      const issuer_state = await stateOf(wallet, uri);
      const details = [{ type: 'openid_credential', credential_configuration_id: 'card', extra: { a: [1] } }];
      const requestUri = await wallet.push(uri, '', {
        authorization_details: JSON.stringify(details),
        client_secret: 'nobody shall see',
        unknown: 'neither',
      });
      expect(await seen(session)).to.deep.equal({ authorization_code: undefined, auth_queries: undefined });
      const code = await wallet.authorize(requestUri);
      const auth_queries = { ...AUTHORIZATION_REQUEST, issuer_state, authorization_details: details };
      expect(await seen(session)).to.deep.equal({ authorization_code: undefined, auth_queries });

      expect((await wallet.redeemCode(code)).status).to.equal(200);
      expect(await seen(session)).to.deep.equal({ authorization_code: code, auth_queries });
      const [listed] = await call('GET', `/session?q=${session}`);
      expect(listed).to.not.have.any.keys('authorization_code', 'auth_queries');
    });

    it('contains the times up to the token, and the authentication of the wallet', async () => {
      const times = async (session: string) => {
        const { authorizedAt, tokenAt, walletAuthentication } = await call('GET', `/session/${session}`);
        return { authorizedAt, tokenAt, walletAuthentication };
      };
      const began = Date.now() - 1_000;
      const isRecent = (time: string) => Date.parse(time) >= began && Date.parse(time) <= Date.now() + 1_000;
      const { uri, session } = await offered();
      const wallet = new RawWallet(service, 'acme');
      const nothing = { authorizedAt: undefined, tokenAt: undefined, walletAuthentication: undefined };
      expect(await times(session)).to.deep.equal(nothing);
      const code = await wallet.authorize(await wallet.push(uri, 'card'));
      const { authorizedAt, ...rest } = await times(session);
      expect(isRecent(authorizedAt), authorizedAt).to.equal(true);
      expect(rest).to.deep.equal({ tokenAt: undefined, walletAuthentication: undefined });
      expect((await wallet.redeemCode(code)).status).to.equal(200);
      const after = await times(session);
      expect(after).to.include({ authorizedAt, walletAuthentication: 'none' });
      expect(isRecent(after.tokenAt), after.tokenAt).to.equal(true);

      const plain = await call('POST', '/issuer/offer', { ...OFFER, flow: 'pre_authorized_code' });
      await new RawWallet(service, 'acme').accessToken(plain.uri);
      const of = await times(plain.session);
      expect(of).to.include({ authorizedAt: undefined, walletAuthentication: 'none' });
      expect(isRecent(of.tokenAt), of.tokenAt).to.equal(true);
      const [listed] = await call('GET', `/session?q=${session}`);
      expect(listed).to.not.have.any.keys('authorizedAt', 'tokenAt', 'walletAuthentication');
    });

    it('is the request of the wallet that redeemed the last code', async () => {
      const { uri, session } = await offered();
      const codes: string[] = [];
      for (const state of ['first', 'second', 'third']) {
        const wallet = new RawWallet(service, 'acme');
        const code = await wallet.authorize(await wallet.push(uri, 'card', { state }));
        codes.push(code);
        if (state !== 'third') expect((await wallet.redeemCode(code)).status).to.equal(200);
      }
      const { authorization_code, auth_queries } = await seen(session);
      expect([authorization_code, auth_queries.state]).to.deep.equal([codes[1], 'second']);
    });

    it('is separate for each session and each tenant', async () => {
      const [one, two] = [await offered(), await offered()];
      const wallet = new RawWallet(service, 'acme');
      const code = await wallet.authorize(await wallet.push(one.uri, 'card'));
      expect((await wallet.redeemCode(code)).status).to.equal(200);
      expect(await seen(two.session)).to.deep.equal({ authorization_code: undefined, auth_queries: undefined });
      const other = await createTenant(service, 'other');
      const foreign = await service.call('GET', `/session/${one.session}`, { token: other.token });
      expect(foreign.status).to.equal(404);
    });

    it('stays with a cancelled session', async () => {
      const { uri, session } = await offered();
      const wallet = new RawWallet(service, 'acme');
      await wallet.authorize(await wallet.push(uri, 'card', { state: 'kept' }));
      const { auth_queries } = await call('POST', `/session/${session}/cancel`);
      expect(auth_queries.state).to.equal('kept');
    });

    it('is sealed at rest, and removed by anonymization while the wallet can continue', async () => {
      const { uri, session } = await offered();
      const wallet = new RawWallet(service, 'acme');
      const state = 'state-of-Wilhelmina-Unmistakable';
      const code = await wallet.authorize(await wallet.push(uri, 'card', { state }));
      const { body } = await wallet.redeemCode(code);
      expect((await wallet.request(body.access_token, 'card')).status).to.equal(200);
      expect((await seen(session)).auth_queries.state).to.equal(state);
      const rows = () => run(`select * from grants where session_id = '${session}'`);
      const before = JSON.stringify(await rows());
      expect(before).to.include('document').and.not.include(state).and.not.include(code);

      await call('PUT', '/session-config', { ttlSeconds: 60, cleanupMode: 'anonymize' });
      const { maintenance } = service.service.container.get(Store);
      const cleanUp = () => maintenance.cleanUpSessions(new Date(Date.now() + 61_000), 100, { ttlSeconds: 86_400 });
      await run(...REFUSED_DOCUMENTS[name].make);
      await cleanUp().then(
        () => expect.fail('the database takes what it refuses'),
        () => undefined,
      );
      await run(...REFUSED_DOCUMENTS[name].remove);
      // What stopped half-way is done by the next one.
      await cleanUp();
      expect(await seen(session)).to.deep.equal({ authorization_code: undefined, auth_queries: undefined });
      const shown = await call('GET', `/session/${session}`);
      expect(shown, 'nor exact times').to.not.have.any.keys('authorizedAt', 'tokenAt', 'walletAuthentication');
      const [left, ...more] = await rows();
      expect(more).to.deep.equal([]);
      const documentOf = (row: unknown) => String((row as { document: unknown }).document);
      expect(documentOf(left).length, 'what was sealed is shorter').to.be.lessThan(documentOf(JSON.parse(before)[0]).length - state.length);
      // The grant is what renewals rest on.
      const refreshed = await wallet.refresh(body.refresh_token, { client_id: AUTHORIZATION_REQUEST.client_id });
      expect(refreshed.status, refreshed.text).to.equal(200);
      expect((await wallet.request(refreshed.body.access_token, 'card')).status).to.equal(200);
    });
  });
}

describe('the authorization request of a session at the chained server', () => {
  let world: ChainedWorld;
  before(async () => {
    world = await ChainedWorld.start(['acme']);
  });
  after(() => world.close());

  it('is shown like that of the built-in server, also if the wallet started the flow', async () => {
    const { token, wallet } = await world.createIssuingTenant('acme');
    const code = await wallet.chainedCode(world.provider, { scope: 'card' });
    const spent = async () => {
      const sessions = await world.service.call('GET', '/session', { token });
      const { text, body } = await world.service.call('GET', `/session/${sessions.body[0].id}`, { token });
      expect(body.auth_queries, text).to.deep.equal({ ...AUTHORIZATION_REQUEST, scope: 'card' });
      return body.authorization_code;
    };
    expect(await spent()).to.equal(undefined);
    expect((await wallet.redeemCode(code)).status).to.equal(200);
    expect(await spent()).to.equal(code);
  });
});
