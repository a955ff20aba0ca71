import { expect } from 'chai';
import { ListClients } from '../../../application/clients/clients.ts';
import { FolderFaultsError } from '../../../application/configuration-files/import-folder.ts';
import { RemoveEndedTenants } from '../../../application/tenants/remove-ended-tenants.ts';
import { GetTenant, ListTenants } from '../../../application/tenants/tenants.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { outcomeOf, ROOT } from '../administrators.ts';
import { aFolderWorld, CARD, type Folder, type FolderWorld } from './folder-kit.ts';

/** The escape keeps the linter from reading it as a template literal. */
const placeholder = (variable: string) => `$\{${variable}}`;
const SECRET = 'the-key-of-the-webhook';
const WEBHOOK = { url: 'https://b.example/', auth: { type: 'apiKey', config: { headerName: 'X-Key', value: SECRET } } };
const REGISTRAR_LOGIN = {
  registrarUrl: 'https://registrar.example',
  oidcUrl: 'https://login.example',
  clientId: 'vidimus',
  username: 'beta',
  password: 'the-password',
};
const FOLDER: Folder = {
  'beta/tenant.json': { name: 'Beta', sessionConfig: { ttlSeconds: 100 } },
  'beta/clients/shop.json': { roles: ['issuance:offer'], description: `pays with ${placeholder('MONEY')}` },
  'beta/issuance/config.json': { display: [{ name: 'Beta', locale: 'en' }], batchSize: 3 },
  'beta/issuance/credentials/card.json': { ...CARD, claims: null, claimsWebhook: WEBHOOK },
  'beta/registrar.json': REGISTRAR_LOGIN,
  'beta/trust-lists/ours.json': {
    entities: [{ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Beta', country: 'DE', streetAddress: 'Weg 1' } }],
  },
};

describe('folder import', () => {
  let world: FolderWorld;
  beforeEach(async () => {
    world = await aFolderWorld();
  });
  const faultsOf = async (folder: Folder): Promise<FolderFaultsError> => {
    try {
      await world.load(folder);
    } catch (error) {
      if (error instanceof FolderFaultsError) return error;
      throw error;
    }
    throw new Error('nothing failed');
  };
  const beta = 'beta' as TenantId;
  const clients = async () =>
    (await new ListClients(world).execute({ ...world.caller([]), tenantId: beta })).map(({ clientId }) => clientId);

  const loadFolder = () => world.store.prepare('the folder', () => world.load(FOLDER));

  it('creates missing documents, and leaves the others unchanged', async () => {
    await loadFolder();
    const { tenant } = await new GetTenant(world).execute(ROOT, beta);
    expect(tenant).to.deep.include({ name: 'Beta', sessionConfig: { ttlSeconds: 100 } });
    expect(await clients()).to.deep.equal(['shop']);
    await world.load({ 'beta/tenant.json': { name: 'Beta & Co' } });
    expect(await clients()).to.deep.equal(['shop']);
    expect((await new GetTenant(world).execute(ROOT, beta)).tenant).to.include({ name: 'Beta & Co' });
    expect(world.registrar.calls, 'a start does not depend on others').to.deep.equal([]);
  });

  it('writes nothing if there are no changes', async () => {
    await loadFolder();
    const entries = async () => world.store.forTenant(beta, ({ audit }) => audit.list({ limit: 500 }));
    const before = await entries();
    world.clock.forward(60_000);
    await world.load(FOLDER);
    expect(await entries()).to.deep.equal(before);
  });

  it('writes nothing when an earlier release stored a configuration without later properties', async () => {
    const presentationBody = { dcql_query: { credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:c:1'] } }] } };
    const folder = { ...FOLDER, 'beta/presentation/ask.json': presentationBody };
    await world.load(folder);
    await world.store.forTenant(
      beta,
      async ({ presentationConfigurations }) => {
        const { dcApiProtocols: _later, ...earlier } = await presentationConfigurations.get('ask');
        await presentationConfigurations.put(earlier as never);
      },
      { by: 'system', exclusive: true },
    );
    const storedConfiguration = () =>
      world.store.forTenant(beta, ({ presentationConfigurations }) => presentationConfigurations.get('ask'));
    const before = await storedConfiguration();
    expect(before).not.to.have.property('dcApiProtocols');
    world.clock.forward(60_000);
    await world.load(folder);
    expect(await storedConfiguration()).to.deep.equal(before);
  });

  it('stores nothing if there is a fault, and reports all faults', async () => {
    const invalidFolder = {
      ...FOLDER,
      'beta/clients/shop.json': { roles: [] },
      'beta/registrar.json': { ...REGISTRAR_LOGIN, password: '' },
    };
    const { name, message, faults } = await faultsOf(invalidFolder);
    expect(name).to.equal('FolderFaults');
    expect(faults.map(({ file, path }) => [file, path])).to.deep.equal([
      ['beta/clients/shop.json', 'roles'],
      ['beta/registrar.json', 'password'],
    ]);
    expect(message.split('\n')).to.have.length(3);
    expect(message).to.match(/^the configuration in config has faults:\n {2}- beta\/clients\/shop.json: roles: /);
    expect((await new ListTenants(world).execute()).map(({ tenant }) => tenant.id)).to.deep.equal(['acme']);
  });

  it('hides secrets in errors', async () => {
    world.kms.generate = async () => {
      throw new Error(`no key for ${SECRET}`);
    };
    const message = await world.load(FOLDER, [SECRET]).catch((error: Error) => error.message);
    expect(message).to.equal('no key for ***');
  });

  describe('compared with the export', () => {
    const exportFiles = async (tenant = 'beta') => {
      const { files, secrets } = await world.save(tenant);
      return { files: Object.fromEntries(files.map(({ path, document }) => [path, document])), secrets };
    };

    it('has a file per document, without secrets and generated properties', async () => {
      await loadFolder();
      const { files, secrets } = await exportFiles();
      expect(Object.keys(files)).to.include.members([
        ...['tenant.json', 'registrar.json', 'clients/shop.json', 'keys/signing.json'],
        ...['issuance/config.json', 'issuance/credentials/card.json', 'trust-lists/ours.json'],
      ]);
      const text = JSON.stringify(files);
      expect(text).to.not.include(SECRET).and.not.include(REGISTRAR_LOGIN.password);
      expect(text).to.not.match(/createdAt|updatedAt|sequenceNumber|secretHash|"jwt"/);
      expect(secrets.map(({ path, member }) => [path, member])).to.deep.include.members([
        ['issuance/credentials/card.json', 'claimsWebhook.auth.config.value'],
        ['registrar.json', 'password'],
      ]);
      for (const { name } of secrets) expect(text).to.include(placeholder(name));
      expect(files['clients/shop.json'], 'text that looks like a placeholder').to.include({
        description: `pays with $${placeholder('MONEY')}`,
      });
    });

    it('is the same each time', async () => {
      await loadFolder();
      expect(await world.save('beta')).to.deep.equal(await world.save('beta'));
    });

    it('distinguishes names that differ in case only', async () => {
      await world.load({
        'beta/tenant.json': { name: 'Beta' },
        'beta/clients/shop.json': { roles: ['issuance:offer'] },
        'beta/clients/Shop.json': { roles: ['issuance:offer'] },
      });
      const { files } = await exportFiles();
      expect(Object.keys(files)).to.include.members(['clients/Shop.json', 'clients/shop-2.json']);
    });

    it('is rejected for an unknown tenant: not_found', async () => {
      expect(await outcomeOf(world.save('unknown'))).to.equal('not_found');
    });
  });
});

const TENANT = { name: 'Acme' };
const BETA = { 'beta/tenant.json': { name: 'Beta' } };
const SHOP = { roles: ['issuance:offer'], secret: 'sixteen-or-more-chars' };

describe('folder check', () => {
  let world: FolderWorld;
  beforeEach(async () => {
    world = await aFolderWorld();
  });
  const faults = async (folder: Folder, secrets?: readonly string[]) =>
    (await world.check(folder, secrets)).faults.map(({ file, path }) => `${file} ${path}`.trim());

  it('reports the result of an import without changes', async () => {
    const folder = { ...BETA, 'beta/clients/shop.json': SHOP, 'acme/tenant.json': TENANT };
    const { documents, outcomes, faults: problems } = await world.check(folder);
    expect(problems).to.deep.equal([]);
    expect([...documents.keys()]).to.deep.equal(['acme', 'beta']);
    const outcomeByFile = Object.fromEntries([...outcomes].map(([{ file }, outcome]) => [file, outcome]));
    expect(outcomeByFile).to.deep.equal({
      'acme/tenant.json': 'unchanged',
      'beta/tenant.json': 'created',
      'beta/clients/shop.json': 'created',
    });
    const result = await world.check({ 'acme/tenant.json': { name: 'Another name' } });
    expect([...result.outcomes.values()]).to.deep.equal(['changed']);
    expect((await new ListTenants(world).execute()).map(({ tenant }) => tenant.name)).to.deep.equal(['Acme']);
  });

  const credential = (changes: object) => ({ ...BETA, 'beta/issuance/credentials/card.json': { ...CARD, ...changes } });
  const cases: [string, Folder, string[]][] = [
    ['of a property', credential({ lifeTime: 1 }), ['beta/issuance/credentials/card.json lifeTime']],
    [
      'of several properties',
      credential({ lifeTime: 1, vct: 5 }),
      ['beta/issuance/credentials/card.json lifeTime', 'beta/issuance/credentials/card.json vct'],
    ],
    ['of a dangling reference', credential({ keyChainId: 'x' }), ['beta/issuance/credentials/card.json keyChainId']],
    [
      'of a blocked address',
      credential({ claims: null, claimsWebhook: { url: 'https://db.internal/' } }),
      ['beta/issuance/credentials/card.json claimsWebhook.url'],
    ],
    ['of an unreadable file', { ...BETA, 'beta/registrar.json': undefined }, ['beta/registrar.json']],
    ['of a tenant without a tenant.json', { 'beta/clients/shop.json': SHOP }, ['beta/tenant.json']],
    ['of an invalid tenant id', { 'Beta/tenant.json': { name: 'Beta' } }, ['Beta', 'Beta/tenant.json id']],
    ['of a tenant under the name of another', { 'beta/tenant.json': { id: 'gamma', name: 'B' } }, ['beta/tenant.json id']],
    [
      'of two files for one document',
      { ...BETA, 'beta/clients/a.json': { ...SHOP, clientId: 'shop' }, 'beta/clients/b.json': { ...SHOP, clientId: 'shop' } },
      ['beta/clients/b.json'],
    ],
    [
      'of an administrator with roles in two files',
      {
        'beta/tenant.json': { name: 'B', roles: ['clients:manage'] },
        'beta/clients/beta-admin.json': { ...SHOP, roles: ['clients:manage'] },
      },
      ['beta/tenant.json roles'],
    ],
    [
      'of a masked secret',
      {
        ...BETA,
        'beta/registrar.json': {
          registrarUrl: 'https://r.example',
          oidcUrl: 'https://o.example',
          clientId: 'c',
          username: 'u',
          password: '***',
        },
      },
      ['beta/registrar.json password'],
    ],
    [
      'of a client id of another tenant',
      { 'acme/tenant.json': TENANT, 'acme/clients/shop.json': SHOP, ...BETA, 'beta/clients/shop.json': SHOP },
      ['beta/clients/shop.json'],
    ],
    [
      'only of the rejected file, not of a file that refers to it',
      { ...credential({ keyChainId: 'mine' }), 'beta/keys/mine.json': { usageType: 'nonsense' } },
      ['beta/keys/mine.json usageType'],
    ],
  ];
  for (const [description, folder, expected] of cases) {
    it(`reports faults ${description}`, async () => {
      expect(await faults(folder)).to.deep.equal(expected);
    });
  }

  it('reports all faults, in the order of files and properties', async () => {
    const folder = { ...credential({ lifeTime: 1 }), 'acme/clients/shop.json': SHOP, 'beta/clients/shop.json': { ...SHOP, roles: [] } };
    expect(await faults(folder)).to.deep.equal([
      'acme/tenant.json',
      'beta/clients/shop.json roles',
      'beta/issuance/credentials/card.json lifeTime',
    ]);
  });

  it('begins each note with its subject, also without the list of affected objects', async () => {
    const { advice } = await world.check({
      'beta/tenant.json': { name: 'Beta', profile: 'haip', statusListConfig: { ttl: 200_000, capacity: 1_000 } },
      'beta/issuance/credentials/card.json': CARD,
      'beta/issuance/credentials/one-proof.json': {
        ...{ ...CARD, id: 'one-proof' },
        ...{ keyAttestationsRequired: {}, proofTypes: ['jwt'] },
      },
    });
    const messages = advice.map(({ message }) => message);
    expect(messages.join('\n'))
      .to.include('verifiers may accept a credential for more than a day')
      .and.include('wallets with that library cannot read the metadata')
      .and.include('wallets that prove their keys only by attestation cannot get the credential');
    for (const message of messages) expect(message).to.not.match(/^(they|it|its|he|this|so)\b/);
  });

  it('warns of a client with configurations that do not exist', async () => {
    const shop = { ...SHOP, allowedIssuanceConfigs: ['card', 'nothing'] };
    const { faults: problems, warnings } = await world.check({ ...credential({}), 'beta/clients/shop.json': shop });
    expect(problems).to.deep.equal([]);
    expect(warnings.map(({ file, path }) => [file, path])).to.deep.equal([['beta/clients/shop.json', 'allowedIssuanceConfigs.1']]);
  });

  it('quotes no value of the environment', async () => {
    const entities = [
      { type: 'internal', issuerKeyChainId: 'from-the-outside', info: { name: 'Beta', country: 'DE', streetAddress: 'Weg 1' } },
    ];
    const folder = { ...BETA, 'beta/trust-lists/ours.json': { entities } };
    const { faults: problems } = await world.check(folder, ['from-the-outside']);
    expect(JSON.stringify(problems)).to.include('***');
    expect(JSON.stringify(problems)).to.not.include('from-the-outside');
  });
});

const HOUR_MS = 3_600_000;

describe('folder with an expired tenant', () => {
  let world: FolderWorld;
  let logLines: string[];
  beforeEach(async () => {
    world = await aFolderWorld();
    logLines = [];
    Object.assign(world.log, {
      warn: (message: string) => {
        if (message.includes('endsAt')) logLines.push(message);
      },
    });
  });
  const inHours = (hours: number) => new Date(world.clock.now().getTime() + hours * HOUR_MS).toISOString();
  const folder = (endsAt: string) => ({
    'beta/tenant.json': { name: 'Beta', endsAt },
    'beta/issuance/credentials/card.json': CARD,
    'gamma/tenant.json': { name: 'Gamma' },
  });
  const tenants = async () => (await new ListTenants(world).execute()).map(({ tenant }) => tenant.id);
  const WARNING = /^configuration folder: beta\/tenant\.json: endsAt: this tenant expired at /;

  it('is imported without it, with one warning', async () => {
    await world.load(folder(inHours(-1)));
    expect(await tenants()).to.deep.equal(['acme', 'gamma']);
    expect(logLines).to.have.length(1);
    expect(logLines[0]).to.match(WARNING);
  });

  it('is imported while the tenant is being removed, and afterwards, at every start', async () => {
    const validFolder = folder(inHours(1));
    await world.load(validFolder);
    expect(await tenants()).to.include('beta');
    world.clock.forward(HOUR_MS);
    await world.load(validFolder);
    expect(logLines[0]).to.include('it is being removed');
    await new RemoveEndedTenants(world).execute(world.clock.now(), 100);
    await world.load(validFolder);
    expect(logLines[1]).to.include('it is not created again');
    expect(await tenants()).to.deep.equal(['acme', 'gamma']);
  });

  it('with a later time waits for the removal, and creates the tenant again', async () => {
    await world.load(folder(inHours(1)));
    world.clock.forward(HOUR_MS);
    await world.load(folder(inHours(5)));
    expect(logLines).to.have.length(1);
    await new RemoveEndedTenants(world).execute(world.clock.now(), 100);
    await world.load(folder(inHours(5)));
    expect(await tenants()).to.include('beta');
  });

  it('is rejected if the tenant exists, so that a mistyped time ends no tenant', async () => {
    await world.load({ 'beta/tenant.json': { name: 'Beta' } });
    const error = await world.load(folder(inHours(-1))).catch((error: unknown) => error);
    expect(error).to.be.instanceOf(FolderFaultsError);
    expect((error as FolderFaultsError).faults.map(({ file, path }) => `${file} ${path}`)).to.include('beta/tenant.json endsAt');
    expect(await tenants()).to.deep.equal(['acme', 'beta']);
  });

  it('is validated: its other files must be valid', async () => {
    const invalidFolder = { ...folder(inHours(-1)), 'beta/issuance/credentials/card.json': { ...CARD, lifeTime: 1 } };
    const { faults, warnings } = await world.check(invalidFolder);
    expect(faults.map(({ path }) => path)).to.deep.equal(['lifeTime']);
    expect(warnings.map(({ path }) => path)).to.deep.equal(['endsAt']);
  });
});
