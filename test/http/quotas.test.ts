import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { credentialBody, presentationBody } from '../support/populated.ts';
import { processorTimeUntil } from '../support/processor-time.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const QUOTAS = {
  QUOTA_CREDENTIAL_CONFIGS: '5',
  QUOTA_PRESENTATION_CONFIGS: '4',
  QUOTA_KEY_CHAINS: '8',
  QUOTA_CLIENTS: '6',
  QUOTA_CONFIG_BYTES: '65536',
};

const named = (length: number) => ({ given_name: 'Ada', family_name: 'x'.repeat(length) });

for (const kind of databases()) {
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

    it('let exactly so many credential configurations be made by callers who race', async () => {
      const key = await signer();
      const create = (id: string) => call('POST', '/issuer/credentials', credentialBody(id, key));
      const answers = await Promise.all(Array.from({ length: 24 }, (_, index) => create(`c-${index}`)));
      expect(refusals(answers, 'QUOTA_CREDENTIAL_CONFIGS')).to.equal(19);
      const { body } = await call('GET', '/issuer/credentials');
      expect(body).to.have.length(5);
      const [{ id }] = body;
      expect((await call('PATCH', `/issuer/credentials/${id}`, { description: 'changed' })).status).to.equal(
        200,
      );
      expect((await call('DELETE', `/issuer/credentials/${id}`)).status).to.be.oneOf([200, 204]);
      expect((await create('again')).status).to.equal(201);
    });

    it('hold for presentation configurations, key chains and clients, by every way to make one', async () => {
      const key = await signer();
      const many = <T>(work: (index: number) => Promise<T>) =>
        Promise.all(Array.from({ length: 12 }, (_, index) => work(index)));
      const presentations = await many((index) =>
        call('POST', '/verifier/config', presentationBody(`p-${index}`, key)),
      );
      expect(refusals(presentations, 'QUOTA_PRESENTATION_CONFIGS')).to.equal(8);

      const before = (await call('GET', '/key-chain')).body.length;
      const chains = await many((index) =>
        call('POST', '/key-chain', { id: `k-${index}`, usageType: 'signing' }),
      );
      expect(refusals(chains, 'QUOTA_KEY_CHAINS')).to.equal(12 - (8 - before));

      const clients = await many((index) =>
        call('POST', '/client', {
          clientId: `${token.slice(-8).replaceAll(/[^a-zA-Z0-9]/g, 'x')}-${index}`,
          roles: ['issuance:offer'],
        }),
      );
      expect(refusals(clients, 'QUOTA_CLIENTS')).to.equal(12 - 5);
    });

    it('hold for bytes, and let what is too much become smaller', async () => {
      const key = await signer();
      const large = (id: string, length: number) => ({
        ...credentialBody(id, key),
        description: 'x',
        claims: named(length),
      });
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

    it('are for each tenant alone', async () => {
      const key = await signer();
      for (let index = 0; index < 5; index++) {
        await call('POST', '/issuer/credentials', credentialBody(`c-${index}`, key));
      }
      ({ token } = await createTenant(service, `other-${tenants++}`));
      const answer = await call('POST', '/issuer/credentials', credentialBody('c-0', await signer()));
      expect(answer.status, answer.text).to.equal(201);
    });

    it('let the schema that takes long to compile not be stored', async () => {
      const key = await signer();
      const properties = Object.fromEntries(
        Array.from({ length: 1_500 }, (_, index) => [`p${index}`, { pattern: 'a' }]),
      );
      let answer: Answer | undefined;
      const spent = await processorTimeUntil(async () => {
        answer = await call('POST', '/issuer/credentials', {
          ...credentialBody('slow', key),
          schema: { properties },
        });
      });
      expect(answer?.status, answer?.text).to.equal(400);
      expect(answer?.text).to.include('the schema has more than 500 subschemas');
      expect(spent).to.be.lessThan(400);
    });
  });
}
