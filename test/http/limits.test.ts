import { expect } from 'chai';
import { httpDatabases, type TestDatabase } from '../support/databases.ts';
import { processorTimeUntil } from '../support/measurements.ts';
import { credentialBody, presentationBody } from '../support/populated.ts';
import { QUERY, requestPresentation } from '../support/present.ts';
import { type Answer, createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';

const PUBLIC = '9.9.9.7';
const NEIGHBOUR = '9.9.9.8';
const CREDENTIALS = { grant_type: 'client_credentials', client_id: ROOT.clientId, client_secret: ROOT.secret };

describe('rate limits', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService({
      TRUST_PROXY: '1',
      RATE_LIMIT_TOKEN: '5',
      RATE_LIMIT_NONCE: '5',
      RATE_LIMIT_LOGIN: '3',
      RATE_LIMIT_OFFER: '8',
    });
    ({ token } = await createTenant(service, 'acme'));
    const configured = await service.call('POST', '/verifier/config', { token, json: { id: 'check', dcql_query: QUERY } });
    expect(configured.status, configured.text).to.equal(201);
  });
  after(() => service.close());

  const from = (address: string) => ({ 'X-Forwarded-For': address });
  const nonce = (address: string) => service.call('POST', '/acme/nonce', { headers: from(address) });
  const statusesOf = async (calls: number, call: () => Promise<{ status: number }>) => {
    const statuses: number[] = [];
    for (let i = 0; i < calls; i++) statuses.push((await call()).status);
    return statuses;
  };

  it('return a protocol error with Retry-After, and do not affect other callers', async () => {
    expect(await statusesOf(6, () => nonce(PUBLIC))).to.deep.equal([200, 200, 200, 200, 200, 429]);
    const refused = await nonce(PUBLIC);
    expect(refused.body.error).to.equal('temporarily_unavailable');
    expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60);
    expect((await nonce(NEIGHBOUR)).status).to.equal(200);
  });

  it('apply to the start of authorizations, too', async () => {
    const begin = () => service.call('POST', '/acme/interactive-authorization', { headers: from('9.9.9.30'), form: { client_id: 'x' } });
    expect(await statusesOf(6, begin)).to.deep.equal([400, 400, 400, 400, 400, 429]);
  });

  it('apply where each call would cause a call to an upstream provider', async () => {
    for (const path of ['authorize', 'callback']) {
      const login = (address: string) => service.call('GET', `/acme/chained-as/${path}?code=x&state=y`, { headers: from(address) });
      const address = path === 'authorize' ? '9.9.9.40' : '9.9.9.41';
      const statuses = await statusesOf(4, () => login(address));
      expect(
        statuses.slice(0, 3).every((status) => status >= 400 && status < 429),
        `${statuses}`,
      ).to.equal(true);
      expect(statuses[3]).to.equal(429);
      expect((await login('9.9.9.42')).status).to.not.equal(429);
    }
  });

  it('apply to the IPv6 prefix of one subscriber', async () => {
    const addresses = Array.from({ length: 5 }, (_, i) => `2001:db9:1:2:${i}::1`);
    for (const address of addresses) expect((await nonce(address)).status).to.equal(200);
    expect((await nonce('2001:db9:1:2:ffff::9')).status).to.equal(429);
    expect((await nonce('2001:db9:1:3::1')).status).to.equal(200);
  });

  it('do not apply when the address does not identify the caller', async () => {
    for (const address of ['10.1.2.3', '127.0.0.1', '192.168.0.9', 'fd00::1', '100.64.0.1']) {
      const statuses = await statusesOf(7, () => nonce(address));
      expect(statuses, address).to.deep.equal(Array(7).fill(200));
    }
  });

  it('apply to each notation of an address by a proxy, and to all requests without an address together', async () => {
    const forms = {
      'with a port': ['8.8.8.9', '8.8.8.9:5555'],
      'in brackets': ['2a00:1:2:3::1', '[2a00:1:2:3::2]', '[2a00:1:2:3::3]:443'],
      'of 6to4': ['2002:808:808:1::1', '2002:808:808:2::1', '8.8.8.8'],
      translated: ['64:ff9b::909:909', '9.9.9.9'],
      unknown: ['unknown', '_hidden', '999.1.1.1'],
    };
    for (const [form, addresses] of Object.entries(forms)) {
      let next = 0;
      const statuses = await statusesOf(6, () => nonce(addresses[next++ % addresses.length] ?? ''));
      expect(statuses, form).to.deep.equal([200, 200, 200, 200, 200, 429]);
    }
  });

  it('cannot be evaded by choosing the counted address', async () => {
    let next = 0;
    const statuses = await statusesOf(6, () => nonce(`9.8.7.${++next}, 9.8.8.1`));
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 429]);
  });

  it('cannot lock out a client that has logged in from its address', async () => {
    const login = (address: string, client_secret = ROOT.secret) =>
      service.call('POST', '/oauth2/token', { json: { ...CREDENTIALS, client_secret }, headers: from(address) });
    expect((await login('9.7.0.1')).status).to.equal(200);
    let next = 0;
    const guessed = await statusesOf(8, () => login(`9.7.1.${++next}`, 'guessed-guessed-guessed'));
    expect(guessed).to.include(429);
    expect((await login('9.7.2.1')).status, 'elsewhere').to.equal(429);
    // Nor by the name of another count.
    for (const client_id of [`${ROOT.clientId} at 9.7.0.1`, `9.7.0.1 ${ROOT.clientId}`]) {
      await statusesOf(8, () =>
        service.call('POST', '/oauth2/token', { json: { ...CREDENTIALS, client_id }, headers: from(`9.7.3.${++next}`) }),
      );
    }
    expect((await login('9.7.0.1')).status).to.equal(200);
    expect((await login('9.7.0.1', 'guessed-guessed-guessed')).status, 'not everything').to.equal(401);
  });

  it('prevent guessing the secret of a client, from one address or from many', async () => {
    const guess = (client_id: string, address: string) =>
      service.call('POST', '/oauth2/token', {
        json: { ...CREDENTIALS, client_id, client_secret: 'guessed-guessed-guessed' },
        headers: from(address),
      });
    let next = 0;
    const anyAddress = () => `9.9.10.${++next}`;
    expect(await statusesOf(6, () => guess('victim', anyAddress()))).to.deep.equal([...Array(5).fill(401), 429]);
    expect(await statusesOf(6, () => guess(`other-${++next}`, '9.9.10.250'))).to.deep.equal([...Array(5).fill(401), 429]);
  });

  it('apply at the token and PAR endpoints of tenants as well', async () => {
    for (const [index, path] of ['/acme/token', '/acme/par', '/acme/chained-as/token'].entries()) {
      const address = `9.9.11.${index}`;
      const call = () => service.call('POST', path, { form: {}, headers: from(address) });
      const statuses = await statusesOf(7, call);
      expect(statuses.slice(5), path).to.deep.equal([429, 429]);
      expect(statuses[0], path).to.be.within(400, 404);
    }
  });

  it('apply to each client that creates offers and requests', async () => {
    const offer = () => service.call('POST', '/verifier/offer', { token, json: { response_type: 'uri', requestId: 'check' } });
    const statuses = await statusesOf(9, offer);
    expect(statuses).to.deep.equal([...Array(8).fill(201), 429]);
    const refused = await offer();
    expect(refused.headers.get('content-type')).to.equal('application/problem+json');
    expect(refused.body.code).to.equal('too_many_requests');
    expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60);
    const issuing = await service.call('POST', '/issuer/offer', {
      token,
      json: { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['x'] },
    });
    expect(issuing.status, 'both count together').to.equal(429);
    const other = await createTenant(service, 'other');
    await service.call('POST', '/verifier/config', { token: other.token, json: { id: 'check', dcql_query: QUERY } });
    await requestPresentation(service, other.token, 'check');
  });
});

const QUOTAS = {
  QUOTA_CREDENTIAL_CONFIGS: '5',
  QUOTA_PRESENTATION_CONFIGS: '4',
  QUOTA_KEY_CHAINS: '8',
  QUOTA_CLIENTS: '6',
  QUOTA_CONFIG_BYTES: '65536',
};

const named = (length: number) => ({ given_name: 'Ada', family_name: 'x'.repeat(length) });

for (const kind of httpDatabases()) {
  describe(`Quotas of tenants on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let token: string;
    let tenants = 0;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      service = await startTestService({ ...QUOTAS, DATABASE_URL: database.url });
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });
    beforeEach(async () => {
      ({ token } = await createTenant(service, `acme-${tenants++}`));
    });

    const call = (method: string, path: string, json?: unknown, as = token) =>
      service.call(method, path, { token: as, ...(json !== undefined && { json }) });
    const signer = async () =>
      (await call('GET', '/key-chain')).body.find((chain: { usages: { usage: string }[] }) =>
        JSON.stringify(chain.usages).includes('signing'),
      ).id as string;
    const refusals = (answers: readonly Answer[], setting: string) => {
      for (const { status, body, text } of answers.filter(({ status }) => status > 299)) {
        expect([status, body.detail ?? text].join(' '), text).to.match(new RegExp(`^409 .*${setting}`));
      }
      return answers.filter(({ status }) => status === 409).length;
    };

    it('allow exactly the configured number of credential configurations with concurrent requests', async () => {
      const key = await signer();
      const create = (id: string) => call('POST', '/issuer/credentials', credentialBody(id, key));
      const answers = await Promise.all(Array.from({ length: 24 }, (_, index) => create(`c-${index}`)));
      expect(refusals(answers, 'QUOTA_CREDENTIAL_CONFIGS')).to.equal(19);
      const { body } = await call('GET', '/issuer/credentials');
      expect(body).to.have.length(5);
      const [{ id }] = body;
      expect((await call('PATCH', `/issuer/credentials/${id}`, { description: 'changed' })).status).to.equal(200);
      expect((await call('DELETE', `/issuer/credentials/${id}`)).status).to.be.oneOf([200, 204]);
      expect((await create('again')).status).to.equal(201);
    });

    it('apply to presentation configurations, key chains and clients, in each way to create one', async () => {
      const key = await signer();
      const many = <T>(work: (index: number) => Promise<T>) => Promise.all(Array.from({ length: 12 }, (_, index) => work(index)));
      const presentations = await many((index) => call('POST', '/verifier/config', presentationBody(`p-${index}`, key)));
      expect(refusals(presentations, 'QUOTA_PRESENTATION_CONFIGS')).to.equal(8);

      const before = (await call('GET', '/key-chain')).body.length;
      const chains = await many((index) => call('POST', '/key-chain', { id: `k-${index}`, usageType: 'signing' }));
      expect(refusals(chains, 'QUOTA_KEY_CHAINS')).to.equal(12 - (8 - before));

      const clients = await many((index) =>
        call('POST', '/client', { clientId: `${token.slice(-8).replaceAll(/[^a-zA-Z0-9]/g, 'x')}-${index}`, roles: ['issuance:offer'] }),
      );
      expect(refusals(clients, 'QUOTA_CLIENTS')).to.equal(12 - 5);
    });

    it('apply to bytes, and allow a too large object to become smaller', async () => {
      const key = await signer();
      const large = (id: string, length: number) => ({ ...credentialBody(id, key), description: 'x', claims: named(length) });
      const first = await call('POST', '/issuer/credentials', large('one', 30_000));
      expect(first.status, first.text).to.equal(201);
      const refused = await call('POST', '/issuer/credentials', large('two', 30_000));
      expect(refusals([refused], 'QUOTA_CONFIG_BYTES')).to.equal(1);
      expect((await call('GET', '/issuer/credentials')).body).to.have.length(1);
      const grown = await call('PATCH', '/issuer/credentials/one', { claims: named(60_000) });
      expect(refusals([grown], 'QUOTA_CONFIG_BYTES')).to.equal(1);
      expect((await call('PATCH', '/issuer/credentials/one', { claims: named(1) })).status).to.equal(200);
      expect((await call('POST', '/issuer/credentials', large('two', 30_000))).status).to.equal(201);
    });

    it('apply to each tenant separately', async () => {
      const key = await signer();
      for (let index = 0; index < 5; index++) {
        await call('POST', '/issuer/credentials', credentialBody(`c-${index}`, key));
      }
      ({ token } = await createTenant(service, `other-${tenants++}`));
      const answer = await call('POST', '/issuer/credentials', credentialBody('c-0', await signer()));
      expect(answer.status, answer.text).to.equal(201);
    });

    it('prevent storing a schema that is expensive to compile', async () => {
      const key = await signer();
      const properties = Object.fromEntries(Array.from({ length: 1_500 }, (_, index) => [`p${index}`, { pattern: 'a' }]));
      let answer: Answer | undefined;
      const spent = await processorTimeUntil(async () => {
        answer = await call('POST', '/issuer/credentials', { ...credentialBody('slow', key), schema: { properties } });
      });
      expect(answer?.status, answer?.text).to.equal(400);
      expect(answer?.text).to.include('the schema has more than 500 subschemas');
      expect(spent).to.be.lessThan(400);
    });
  });
}
