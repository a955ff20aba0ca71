import { expect } from 'chai';
import { ListTenants } from '../../../application/tenants/tenants.ts';
import { aFolderWorld, CARD, type Folder, type FolderWorld } from './folder-kit.ts';

const TENANT = { name: 'Acme' };
const BETA = { 'beta/tenant.json': { name: 'Beta' } };
const SHOP = { roles: ['issuance:offer'], secret: 'sixteen-or-more-chars' };

describe('The check of a folder', () => {
  let world: FolderWorld;
  beforeEach(async () => {
    world = await aFolderWorld();
  });
  const faults = async (folder: Folder, secrets?: readonly string[]) =>
    (await world.check(folder, secrets)).faults.map(({ file, path }) => `${file} ${path}`.trim());

  it('says what an import would do, and does none of it', async () => {
    const folder = { ...BETA, 'beta/clients/shop.json': SHOP, 'acme/tenant.json': TENANT };
    const { documents, outcomes, faults: found } = await world.check(folder);
    expect(found).to.deep.equal([]);
    expect([...documents.keys()]).to.deep.equal(['acme', 'beta']);
    const said = Object.fromEntries([...outcomes].map(([{ file }, outcome]) => [file, outcome]));
    expect(said).to.deep.equal({
      'acme/tenant.json': 'unchanged',
      'beta/tenant.json': 'created',
      'beta/clients/shop.json': 'created',
    });
    const changed = await world.check({ 'acme/tenant.json': { name: 'Another name' } });
    expect([...changed.outcomes.values()]).to.deep.equal(['changed']);
    expect((await new ListTenants(world).execute()).map(({ tenant }) => tenant.name)).to.deep.equal(['Acme']);
  });

  const credential = (changes: object) => ({
    ...BETA,
    'beta/issuance/credentials/card.json': { ...CARD, ...changes },
  });
  const cases: [string, Folder, string[]][] = [
    ['of a member', credential({ lifeTime: 1 }), ['beta/issuance/credentials/card.json lifeTime']],
    [
      'of several members',
      credential({ lifeTime: 1, vct: 5 }),
      ['beta/issuance/credentials/card.json lifeTime', 'beta/issuance/credentials/card.json vct'],
    ],
    [
      'of a reference that leads nowhere',
      credential({ keyChainId: 'x' }),
      ['beta/issuance/credentials/card.json keyChainId'],
    ],
    [
      'of an address that may not be called',
      credential({ claims: null, claimsWebhook: { url: 'https://db.internal/' } }),
      ['beta/issuance/credentials/card.json claimsWebhook.url'],
    ],
    ['of a file that cannot be read', { ...BETA, 'beta/registrar.json': undefined }, ['beta/registrar.json']],
    ['of a tenant without its file', { 'beta/clients/shop.json': SHOP }, ['beta/tenant.json']],
    [
      'of a tenant id that is none',
      { 'Beta/tenant.json': { name: 'Beta' } },
      ['Beta', 'Beta/tenant.json id'],
    ],
    [
      'of a tenant under the name of another',
      { 'beta/tenant.json': { id: 'gamma', name: 'B' } },
      ['beta/tenant.json id'],
    ],
    [
      'of two files about one thing',
      {
        ...BETA,
        'beta/clients/a.json': { ...SHOP, clientId: 'shop' },
        'beta/clients/b.json': { ...SHOP, clientId: 'shop' },
      },
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
      'of a secret as answers show it',
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
      'of a client that another tenant has',
      { 'acme/tenant.json': TENANT, 'acme/clients/shop.json': SHOP, ...BETA, 'beta/clients/shop.json': SHOP },
      ['beta/clients/shop.json'],
    ],
    [
      'of none where one file names another that is only refused',
      { ...credential({ keyChainId: 'mine' }), 'beta/keys/mine.json': { usageType: 'nonsense' } },
      ['beta/keys/mine.json usageType'],
    ],
  ];
  for (const [what, folder, found] of cases) {
    it(`finds faults ${what}`, async () => {
      expect(await faults(folder)).to.deep.equal(found);
    });
  }

  it('finds them all, in the order of files and members', async () => {
    const folder = {
      ...credential({ lifeTime: 1 }),
      'acme/clients/shop.json': SHOP,
      'beta/clients/shop.json': { ...SHOP, roles: [] },
    };
    expect(await faults(folder)).to.deep.equal([
      'acme/tenant.json',
      'beta/clients/shop.json roles',
      'beta/issuance/credentials/card.json lifeTime',
    ]);
  });

  it('begins each note with what it is about, also without the list of those concerned', async () => {
    const { advice } = await world.check({
      'beta/tenant.json': {
        name: 'Beta',
        profile: 'haip',
        statusListConfig: { ttl: 200_000, capacity: 1_000 },
      },
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
      .and.include('wallets that prove their keys by attestation alone cannot get the credential');
    for (const message of messages) expect(message).to.not.match(/^(they|it|its|he|this|so)\b/);
  });

  it('warns of a client for configurations that there are not', async () => {
    const shop = { ...SHOP, allowedIssuanceConfigs: ['card', 'nothing'] };
    const { faults: found, warnings } = await world.check({
      ...credential({}),
      'beta/clients/shop.json': shop,
    });
    expect(found).to.deep.equal([]);
    expect(warnings.map(({ file, path }) => [file, path])).to.deep.equal([
      ['beta/clients/shop.json', 'allowedIssuanceConfigs.1'],
    ]);
  });

  it('quotes nothing that came out of the environment', async () => {
    const entities = [
      {
        type: 'internal',
        issuerKeyChainId: 'from-the-outside',
        info: { name: 'Beta', country: 'DE', streetAddress: 'Weg 1' },
      },
    ];
    const folder = { ...BETA, 'beta/trust-lists/ours.json': { entities } };
    const { faults: found } = await world.check(folder, ['from-the-outside']);
    expect(JSON.stringify(found)).to.include('***');
    expect(JSON.stringify(found)).to.not.include('from-the-outside');
  });
});
