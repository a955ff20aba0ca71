import { expect } from 'chai';
import { ListClients } from '../../../application/clients/clients.ts';
import { FolderFaults } from '../../../application/configuration-files/import-folder.ts';
import { GetTenant, ListTenants } from '../../../application/tenants/tenants.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { endOf } from '../administration/kit.ts';
import { ROOT } from '../administration/world.ts';
import { aFolderWorld, CARD, type Folder, type FolderWorld } from './folder-kit.ts';

/** Written so that nobody takes it for a template. */
const placeholder = (inside: string) => `$\{${inside}}`;
const SECRET = 'the-key-of-the-webhook';
const WEBHOOK = {
  url: 'https://b.example/',
  auth: { type: 'apiKey', config: { headerName: 'X-Key', value: SECRET } },
};
const LOGIN = {
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
  'beta/registrar.json': LOGIN,
  'beta/trust-lists/ours.json': {
    entities: [
      {
        type: 'internal',
        issuerKeyChainId: 'signing',
        info: { name: 'Beta', country: 'DE', streetAddress: 'Weg 1' },
      },
    ],
  },
};

describe('An import of a folder', () => {
  let world: FolderWorld;
  beforeEach(async () => {
    world = await aFolderWorld();
  });
  const faultsOf = async (folder: Folder): Promise<FolderFaults> => {
    try {
      await world.load(folder);
    } catch (error) {
      if (error instanceof FolderFaults) return error;
      throw error;
    }
    throw new Error('nothing failed');
  };
  const beta = 'beta' as TenantId;
  const clients = async () =>
    (await new ListClients(world).execute({ ...world.caller([]), tenantId: beta })).map(
      ({ clientId }) => clientId,
    );

  const loaded = () => world.store.prepare('the folder', () => world.load(FOLDER));

  it('makes what is not there, and leaves the rest alone', async () => {
    await loaded();
    const { tenant } = await new GetTenant(world).execute(ROOT, beta);
    expect(tenant).to.deep.include({ name: 'Beta', sessionConfig: { ttlSeconds: 100 } });
    expect(await clients()).to.deep.equal(['shop']);
    await world.load({ 'beta/tenant.json': { name: 'Beta & Co' } });
    expect(await clients()).to.deep.equal(['shop']);
    expect((await new GetTenant(world).execute(ROOT, beta)).tenant).to.include({ name: 'Beta & Co' });
    expect(world.registrar.asked, 'a start does not depend on others').to.deep.equal([]);
  });

  it('writes nothing when everything is as it says', async () => {
    await loaded();
    const entries = async () => world.store.forTenant(beta, ({ audit }) => audit.list({ limit: 500 }));
    const before = await entries();
    world.clock.forward(60_000);
    await world.load(FOLDER);
    expect(await entries()).to.deep.equal(before);
  });

  it('writes nothing when an earlier release stored a configuration without later members', async () => {
    const asks = {
      dcql_query: { credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:c:1'] } }] },
    };
    const folder = { ...FOLDER, 'beta/presentation/ask.json': asks };
    await world.load(folder);
    await world.store.forTenant(
      beta,
      async ({ presentationConfigurations }) => {
        const { dcApiProtocols: _later, ...earlier } = await presentationConfigurations.get('ask');
        await presentationConfigurations.put(earlier as never);
      },
      { by: 'system', alone: true },
    );
    const stored = () =>
      world.store.forTenant(beta, ({ presentationConfigurations }) => presentationConfigurations.get('ask'));
    const before = await stored();
    expect(before).not.to.have.property('dcApiProtocols');
    world.clock.forward(60_000);
    await world.load(folder);
    expect(await stored()).to.deep.equal(before);
  });

  it('stores nothing when anything is wrong, and says all of it', async () => {
    const bad = {
      ...FOLDER,
      'beta/clients/shop.json': { roles: [] },
      'beta/registrar.json': { ...LOGIN, password: '' },
    };
    const { name, message, faults } = await faultsOf(bad);
    expect(name).to.equal('FolderFaults');
    expect(faults.map(({ file, path }) => [file, path])).to.deep.equal([
      ['beta/clients/shop.json', 'roles'],
      ['beta/registrar.json', 'password'],
    ]);
    expect(message.split('\n')).to.have.length(3);
    expect(message).to.match(
      /^the configuration in config has faults:\n {2}- beta\/clients\/shop.json: roles: /,
    );
    expect((await new ListTenants(world).execute()).map(({ tenant }) => tenant.id)).to.deep.equal(['acme']);
  });

  it('tells of no secret when something breaks', async () => {
    world.kms.generate = async () => {
      throw new Error(`no key for ${SECRET}`);
    };
    const broken = await world.load(FOLDER, [SECRET]).catch((error: Error) => error.message);
    expect(broken).to.equal('no key for ***');
  });

  describe('and the export that it takes', () => {
    const exported = async (tenant = 'beta') => {
      const { files, secrets } = await world.save(tenant);
      return { files: Object.fromEntries(files.map(({ path, document }) => [path, document])), secrets };
    };

    it('has each thing in a file, without a secret and without what the service adds', async () => {
      await loaded();
      const { files, secrets } = await exported();
      expect(Object.keys(files)).to.include.members([
        ...['tenant.json', 'registrar.json', 'clients/shop.json', 'keys/signing.json'],
        ...['issuance/config.json', 'issuance/credentials/card.json', 'trust-lists/ours.json'],
      ]);
      const text = JSON.stringify(files);
      expect(text).to.not.include(SECRET).and.not.include(LOGIN.password);
      expect(text).to.not.match(/createdAt|updatedAt|sequenceNumber|secretHash|"jwt"/);
      expect(secrets.map(({ path, member }) => [path, member])).to.deep.include.members([
        ['issuance/credentials/card.json', 'claimsWebhook.auth.config.value'],
        ['registrar.json', 'password'],
      ]);
      for (const { name } of secrets) expect(text).to.include(placeholder(name));
      expect(files['clients/shop.json'], 'what looks like a placeholder').to.include({
        description: `pays with $${placeholder('MONEY')}`,
      });
    });

    it('is the same each time', async () => {
      await loaded();
      expect(await world.save('beta')).to.deep.equal(await world.save('beta'));
    });

    it('takes names that differ in case alone apart', async () => {
      await world.load({
        'beta/tenant.json': { name: 'Beta' },
        'beta/clients/shop.json': { roles: ['issuance:offer'] },
        'beta/clients/Shop.json': { roles: ['issuance:offer'] },
      });
      const { files } = await exported();
      expect(Object.keys(files)).to.include.members(['clients/Shop.json', 'clients/shop-2.json']);
    });

    it('is refused for nobody: not_found', async () => {
      expect(await endOf(world.save('nobody'))).to.equal('not_found');
    });
  });
});
