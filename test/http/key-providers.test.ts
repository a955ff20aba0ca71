import { expect } from 'chai';
import { SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

/** Three places for keys; the database holds them all, which no caller can tell. */
const KMS_CONFIG = JSON.stringify({
  default: 'local',
  providers: {
    local: { type: 'local' },
    house: { type: 'local' },
    bank: { type: 'local', onlyFor: ['bank'] },
  },
  tenants: { configured: 'house' },
});

describe('key providers through HTTP', () => {
  let service: TestService;
  let root: string;

  before(async () => {
    service = await startTestService({ KMS_CONFIG });
    root = await service.rootToken();
  });
  after(() => service.close());

  const call = (method: string, path: string, token: string, json?: unknown): Promise<Answer> =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const providersOf = async (token: string) =>
    (await call('GET', '/key-chain/providers', token)).body as { name: string; own: boolean }[];
  const expectInvalid = (answer: Answer, path: string, words: RegExp) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal(path);
    expect(answer.body.errors[0].message).to.match(words);
  };

  it('are shown with what they can do, whose they are and whether they answer', async () => {
    const { token } = await createTenant(service, 'acme');
    const common = { type: 'local', algorithms: [...SIGNING_ALGORITHMS], status: 'up' };
    expect(await providersOf(token)).to.deep.equal([
      { name: 'local', default: true, own: true, ...common },
      { name: 'house', default: false, own: false, ...common },
    ]);
  });

  it('make the first keys of a tenant where the configuration says, else where it is created', async () => {
    const { token } = await createTenant(service, 'configured');
    const chains = (await call('GET', '/key-chain', token)).body as { kmsProvider: string }[];
    expect(new Set(chains.map(({ kmsProvider }) => kmsProvider))).to.deep.equal(new Set(['house']));
    expect((await providersOf(token)).find(({ own }) => own)?.name).to.equal('house');

    const made = await call('POST', '/tenant', root, { id: 'chosen', name: 'Chosen', kms: 'house' });
    expect([made.status, made.body.kms], made.text).to.deep.equal([201, 'house']);
  });

  it('are changed for the next key of a tenant; the keys that it has stay', async () => {
    const { token } = await createTenant(service, 'moving');
    const patched = await call('PATCH', '/tenant/moving', root, { kms: 'house' });
    expect([patched.status, patched.body.kms], patched.text).to.deep.equal([200, 'house']);
    expect((await call('GET', '/key-chain/signing', token)).body.kmsProvider).to.equal('local');
    const next = await call('POST', '/key-chain', token, { id: 'next', usageType: 'signing' });
    expect(next.body.kmsProvider, next.text).to.equal('house');
    const key = await call('POST', '/key', token, { id: 'a-key' });
    expect(key.body.kmsProvider, key.text).to.equal('house');
    const elsewhere = await call('POST', '/key-chain', token, {
      id: 'elsewhere',
      usageType: 'access',
      kmsProvider: 'local',
    });
    expect(elsewhere.body.kmsProvider, elsewhere.text).to.equal('local');
    const back = await call('PATCH', '/tenant/moving', root, { kms: null });
    expect(back.body.kms).to.equal(null);
    const last = await call('POST', '/key-chain', token, { id: 'last', usageType: 'signing' });
    expect(last.body.kmsProvider, last.text).to.equal('local');
  });

  it('take over a key chain by a rotation, under either name', async () => {
    const { token } = await createTenant(service, 'rotating');
    const before = (await call('GET', '/key-chain/signing', token)).body;
    for (const [member, provider] of [
      ['provider', 'house'],
      ['kmsProvider', 'local'],
    ] as const) {
      const rotated = await call('POST', '/key-chain/signing/rotate', token, { [member]: provider });
      expect(rotated.status, rotated.text).to.equal(200);
      expect(rotated.body.kmsProvider).to.equal(provider);
      expect(rotated.body.rootCertificate).to.equal(before.rootCertificate);
    }
    const jwks = (await call('GET', '/rotating/.well-known/jwks.json', token)).body;
    expect(jwks.keys).to.have.length(3);
    const both = { provider: 'house', kmsProvider: 'local' };
    expectInvalid(await call('POST', '/key-chain/signing/rotate', token, both), 'kmsProvider', /either/);
  });

  it('refuse names that there are not, and tenants that they are not for', async () => {
    const { token } = await createTenant(service, 'strange');
    const wrong = 'There is no KMS provider "vault", but: local, house';
    const unknown = /There is no KMS provider "\w+", but: local, house/;
    expectInvalid(
      await call('POST', '/key-chain', token, { usageType: 'access', kmsProvider: 'vault' }),
      'kmsProvider',
      new RegExp(wrong),
    );
    const rotate = (json: object) => call('POST', '/key-chain/signing/rotate', token, json);
    expectInvalid(await rotate({ provider: 'vault' }), 'provider', unknown);
    expectInvalid(await rotate({ provider: 'bank' }), 'provider', unknown);
    expectInvalid(await call('PATCH', '/tenant/strange', root, { kms: 'vault' }), 'kms', unknown);
    expectInvalid(
      await call('PATCH', '/tenant/strange', root, { kms: 'bank' }),
      'kms',
      /"bank" is not for this/,
    );
    expectInvalid(
      await call('POST', '/tenant', root, { id: 'never', name: 'Never', kms: 'vault' }),
      'kms',
      unknown,
    );
    expect((await call('GET', '/tenant/never', root)).status).to.equal(404);

    const bank = await createTenant(service, 'bank');
    expect((await providersOf(bank.token)).map(({ name }) => name)).to.deep.equal(['local', 'house', 'bank']);
    const made = await call('POST', '/key-chain', bank.token, { usageType: 'access', kmsProvider: 'bank' });
    expect(made.status, made.text).to.equal(201);
  });
});
