import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { DeleteKey, RequestCertificate } from '../../../application/keys/certificates.ts';
import {
  CreateKeyChain,
  DeleteKeyChain,
  GetKeyChain,
  ListKeyChains,
  ListKeyProviders,
  RotateKeyChain,
  UpdateKeyChain,
} from '../../../application/keys/key-chains.ts';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import { defaultIssuance } from '../../../domain/issuance/issuance-configuration.ts';
import { CertificateSigningRequest, KeyChainCreation, KeyChainImport, KeyChainUpdate } from '../../../domain/keys/key-chain-input.ts';
import { MAX_PREVIOUS_LEAVES } from '../../../domain/keys/rotation.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { safeParseInput } from '../../../domain/shared/parse-input.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { type HolderKey, newKey } from '../../support/raw-wallet.ts';
import { certify, certifyKey, DOCUMENT_SIGNER } from '../../support/test-certificates.ts';
import { type AdministrationWorld, anAdministration, outcomeOf } from '../administrators.ts';
import { query } from '../verification/kit.ts';

const pemOf = (...all: readonly { readonly certificate: string }[]) => writePemCertificates(all.map(({ certificate }) => certificate));
const INITIAL_IDS = ['access', 'signing', 'status-list', 'trust-list'];
const TIMESTAMPS = { createdAt: new Date(0), updatedAt: new Date(0) };
const CARD = { id: 'card', config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] } };

describe('key chains', () => {
  let world: AdministrationWorld;
  const caller = () => world.caller(['issuance:manage', 'presentation:manage']);
  const otherTenant = () => ({ ...caller(), tenantId: 'other' as TenantId });
  const create = (body: object) =>
    new CreateKeyChain(world).execute(caller(), 'key' in body ? KeyChainImport.parse(body) : KeyChainCreation.parse(body));
  const get = (id: string, by = caller()) => new GetKeyChain(world).execute(by, id);
  const ids = async () => (await new ListKeyChains(world).execute(caller())).map(({ id }) => id);
  const update = (id: string, changes: object) => new UpdateKeyChain(world).execute(caller(), id, KeyChainUpdate.parse(changes));
  const remove = (id: string) => new DeleteKeyChain(world).execute(caller(), id);
  const removeKey = (id: string) => new DeleteKey(world).execute(caller(), id);
  const rotate = (id: string, kmsProvider?: string) =>
    new RotateKeyChain(world).execute(caller(), id, { kmsProvider }).then(({ chain }) => chain);
  const request = (id: string, body: object = {}) =>
    new RequestCertificate(world).execute(caller(), id, CertificateSigningRequest.parse(body));
  const leafOf = (certificate = '') => new X509Certificate(Buffer.from(certificate, 'base64'));
  const privateKey = (curve = 'P-256') =>
    generateKeyPairSync('ec', { namedCurve: curve }).privateKey.export({ format: 'pem', type: 'pkcs8' });
  /** Creates documents that refer to a key chain. */
  const names = {
    credential: (keyChainId: string | null = null, statusManagement = false) =>
      world.write((repositories) => {
        const body = CredentialConfigurationBody.parse({ ...CARD, keyChainId, statusManagement });
        return repositories.credentialConfigurations.put({ ...body, ...TIMESTAMPS });
      }),
    presentation: (changes: object = {}) =>
      world.write((repositories) => {
        const body = { id: 'age', dcql_query: query({ id: 'pid' }), ...changes };
        return repositories.presentationConfigurations.put({ ...PresentationConfigurationBody.parse(body), ...TIMESTAMPS });
      }),
    issuance: (changes: object) =>
      world.write((repositories) =>
        repositories.issuanceConfiguration.put({ ...defaultIssuance('Acme'), ...changes, id: 'default', ...TIMESTAMPS }),
      ),
    trustList: (changes: object) =>
      world.trustListPublisher.publish('acme' as TenantId, 'list', 'system', () => ({ id: 'list', entities: [], ...changes })),
  };

  beforeEach(async () => {
    world = await anAdministration();
  });

  it('are listed in order of their ids, those of one tenant', async () => {
    await create({ id: 'a-first', usageType: 'access' });
    expect(await ids()).to.deep.equal(['a-first', ...INITIAL_IDS]);
    expect(await outcomeOf(get('access', otherTenant()))).to.equal('not_found');
  });

  it('are created at existing providers, the default one first', async () => {
    expect(await new ListKeyProviders(world).execute(caller())).to.deep.equal([
      { ...{ name: 'local', type: 'local', default: true, algorithms: SIGNING_ALGORITHMS }, ...{ isOwn: true, answers: true } },
    ]);
  });

  const usageCases: [string, object, object][] = [
    ['one usage', { usageType: 'access' }, { usages: ['access'] }],
    ['several usages', { usages: ['signing', 'access'] }, { usages: ['signing', 'access'] }],
    [
      'rotation',
      { usageType: 'access', rotationEnabled: true, rotationIntervalDays: 30 },
      { rotationEnabled: true, rotationIntervalDays: 30 },
    ],
    ['a description', { usageType: 'access', description: 'Door' }, { description: 'Door' }],
  ];
  for (const [description, body, members] of usageCases) {
    it(`are created for ${description}`, async () => {
      const chain = await create({ id: 'made', ...body });
      expect(chain).to.deep.include({ id: 'made', kmsProvider: 'local', ...members });
      expect(leafOf(chain.active.certificates[0]).checkIssued(leafOf(chain.root?.certificate))).to.equal(true);
      expect(await get('made')).to.deep.equal(chain);
    });
  }

  for (const algorithm of ['ES256', 'ES384', 'ES512', 'EdDSA']) {
    it(`are created with ${algorithm}`, async () => {
      const { active } = await create({ usageType: 'access', algorithm });
      expect(active.key.handle.algorithm).to.equal(algorithm);
    });
  }

  it('are certified by the authority of another one, or by themselves', async () => {
    const [belowSigning, selfSigned] = [
      await create({ usageType: 'statusList', rootKeyChainId: 'signing' }),
      await create({ usageType: 'trustList', selfSigned: true }),
    ];
    expect(belowSigning.root?.certificate).to.equal((await get('signing')).root?.certificate);
    expect(selfSigned).to.not.have.property('root');
    const leaf = leafOf(selfSigned.active.certificates[0]);
    expect(leaf.verify(leaf.publicKey)).to.equal(true);
  });

  it('are created from an external key, under their own authority or with its certificates', async () => {
    const pem = privateKey();
    const repositories = await create({ id: 'own', usageType: 'access', key: pem });
    expect(leafOf(repositories.active.certificates[0]).publicKey.equals(createPublicKey(pem))).to.equal(true);
    const root = await certify({ name: 'CA', ca: true });
    const leaf = await certify({ name: 'Leaf', by: root });
    const key = leaf.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
    const foreign = await create({ id: 'theirs', usageType: 'access', key, certificates: pemOf(leaf, root) });
    expect(foreign).to.not.have.property('root');
    expect(foreign.active.certificates).to.deep.equal([leaf.certificate]);
  });

  const rejectedCases: [string, () => object | Promise<object>, string][] = [
    ['an existing id', () => ({ id: 'access', usageType: 'access' }), 'conflict'],
    ['an unknown provider', () => ({ usageType: 'access', kmsProvider: 'x' }), 'invalid_input kmsProvider'],
    ['an unknown authority', () => ({ usageType: 'access', rootKeyChainId: 'x' }), 'invalid_input rootKeyChainId'],
    [
      'two ways to be certified',
      () => ({ usageType: 'trustList', selfSigned: true, rootKeyChainId: 'signing' }),
      'invalid_input selfSigned',
    ],
    ['a self-signed key for wallets', () => ({ usageType: 'signing', selfSigned: true }), 'invalid_input selfSigned'],
    [
      'rotation before certificates expire',
      () => ({ usageType: 'access', rotationEnabled: true, rotationIntervalDays: 1 }),
      'invalid_input rotationIntervalDays',
    ],
    ['a key that is invalid', () => ({ usageType: 'access', key: 'nonsense' }), 'invalid_input key'],
    [
      'a second key with a misspelt marker',
      () => ({ usageType: 'access', key: privateKey() + String(privateKey()).replace('-----BEGIN', '----BEGIN') }),
      'invalid_input key',
    ],
    ['a key on another curve', () => ({ usageType: 'access', key: privateKey('secp256k1') }), 'invalid_input key'],
    [
      'certificates of another key',
      async () => ({ usageType: 'access', key: privateKey(), certificates: pemOf(await certify({ name: 'Other' })) }),
      'invalid_input certificates',
    ],
  ];
  it('are imported from PEM with text around the key and its certificates', async () => {
    const { jwk, privateKey: key } = newKey();
    const root = await certify({ name: 'CA', ca: true });
    const certificates = writePemCertificates([await certifyKey(jwk, { name: 'Access', by: root })]);
    const text = 'Bag Attributes\n    localKeyID: 01\n';
    await create({
      id: 'brought',
      usageType: 'access',
      key: `${text}${key.export({ format: 'pem', type: 'pkcs8' })}# the end\n`,
      certificates: `${text}${certificates}# the end\n`,
    });
    expect(writePemCertificates((await get('brought')).active.certificates)).to.equal(certificates);
  });

  for (const [description, body, outcome] of rejectedCases) {
    it(`are not created with ${description}: ${outcome}`, async () => {
      expect(await outcomeOf(create(await body()))).to.equal(outcome);
      expect(await ids()).to.deep.equal(INITIAL_IDS);
    });
  }

  const documents: [string, object, string][] = [
    ['no usage', { id: 'x' }, 'usageType'],
    ['both usages', { usageType: 'signing', usages: ['signing'] }, 'usageType'],
    ['an unknown usage', { usageType: 'encryption' }, 'usageType'],
    ['an id with a slash', { id: 'a/b', usageType: 'signing' }, 'id'],
    ['an id in the form of a URL', { id: 'providers', usageType: 'signing' }, 'id'],
    ['an unknown algorithm', { usageType: 'signing', algorithm: 'RS256' }, 'algorithm'],
  ];
  for (const [description, body, path] of documents) {
    it(`are not written with ${description}`, () => {
      const read = safeParseInput(KeyChainCreation, body);
      expect('errors' in read && read.errors.map((error) => error.path)).to.deep.equal([path]);
    });
  }

  it('are not created under an authority that was removed concurrently', async () => {
    await create({ id: 'root', usageType: 'signing' });
    const generate = world.kms.generate.bind(world.kms);
    let isPresent = true;
    world.kms.generate = async (...body) => {
      if (isPresent) await world.write(({ keyChains }) => keyChains.remove('root'));
      isPresent = false;
      return generate(...body);
    };
    expect(await outcomeOf(create({ usageType: 'statusList', rootKeyChainId: 'root' }))).to.equal('invalid_input rootKeyChainId');
  });

  it('change the given properties', async () => {
    world.clock.forward(1_000);
    const changed = await update('access', { description: 'Door', rotationEnabled: true });
    expect(changed).to.deep.include({ description: 'Door', rotationEnabled: true, usages: ['access'] });
    expect(changed.updatedAt).to.deep.equal(world.clock.now());
    expect(await update('access', { description: null })).to.not.have.property('description');
  });

  it('get a certificate for mdocs when they get the usage for credentials', async () => {
    expect((await get('trust-list')).active).to.not.have.property('documentSigner');
    const { active } = await update('trust-list', { usages: ['trustList', 'signing'] });
    expect(active.documentSigner).to.have.length(1);
  });

  it('accept certificates of an external authority for their key', async () => {
    const root = await certify({ name: 'CA', ca: true });
    const { active, updatedAt } = await get('access');
    const name = { name: 'Acme', by: root };
    const leaf = await certifyKey(active.key.publicJwk as Parameters<typeof certifyKey>[0], name);
    const certificates = pemOf({ certificate: leaf }, root);
    world.clock.forward(1_000);
    const changed = await update('access', { certificates });
    expect(changed).to.not.have.property('root');
    expect(changed.active).to.deep.include({ certificates: [leaf], key: active.key });
    expect(changed.former).to.have.length(1);
    expect(changed.updatedAt > updatedAt).to.equal(true);
    expect(await outcomeOf(rotate('access')), 'only that authority renews it').to.equal('conflict');
  });

  const changes: [string, string, () => object | Promise<object>, string][] = [
    ['nothing', 'nothing', () => ({}), 'not_found'],
    ['no usage for signing credentials', 'nothing', () => ({ usages: ['signing'] }), 'not_found'],
    ['no usage', 'access', () => ({ usages: [] }), 'invalid_input usages'],
    [
      'rotation before certificates expire',
      'access',
      () => ({ rotationEnabled: true, rotationIntervalDays: 1 }),
      'invalid_input rotationIntervalDays',
    ],
    ['certificates that are invalid', 'access', () => ({ certificates: 'nonsense' }), 'invalid_input certificates'],
    [
      'certificates of another key',
      'access',
      async () => ({ certificates: pemOf(await certify({ name: 'Other' })) }),
      'invalid_input certificates',
    ],
  ];
  for (const [description, id, body, outcome] of changes) {
    it(`are not changed: ${description}: ${outcome}`, async () => {
      const before = await new ListKeyChains(world).execute(caller());
      expect(await outcomeOf(update(id, await body()))).to.equal(outcome);
      expect(await new ListKeyChains(world).execute(caller())).to.deep.equal(before);
    });
  }

  for (const id of ['signing', 'access']) {
    it(`are renewed once if the certificates of "${id}" have the critical basic constraints of release 0.1.0`, async () => {
      const former = await get(id);
      const outside = await certify({ name: 'CA', ca: true });
      const jwk = former.active.key.publicJwk as HolderKey['jwk'];
      const active = {
        ...former.active,
        certificates: [await certifyKey(jwk, { name: 'Leaf', by: outside })],
        ...(id === 'signing' && { documentSigner: [await certifyKey(jwk, { name: 'Leaf', by: outside, ...DOCUMENT_SIGNER })] }),
      };
      await world.write((repositories) => repositories.keyChains.put({ ...former, active }));

      const renewals = new RenewKeyChains({ ...world, log: world.log });
      const results = [await renewals.renew('acme' as TenantId, world.clock.now())];
      results.push(await renewals.renew('acme' as TenantId, world.clock.now()));

      expect(results.map(({ renewed }) => renewed)).to.deep.equal([1, 0]);
      const renewed = await get(id);
      expect(renewed.active.key).to.deep.equal(former.active.key);
      expect(renewed.former?.map(({ certificates }) => certificates)).to.deep.equal([active.certificates]);
      for (const certificate of [...renewed.active.certificates, ...(renewed.active.documentSigner ?? [])]) {
        expect(Buffer.from(certificate, 'base64').toString('hex')).to.not.contain('0603551d13');
      }
    });
  }

  it('get another key by rotation, and keep the previous one while it is valid', async () => {
    const before = await get('access');
    world.clock.forward(1_000);
    const after = await rotate('access');
    expect(after.active.key.handle).to.not.deep.equal(before.active.key.handle);
    expect(after.root).to.deep.equal(before.root);
    expect(after.lastRotatedAt).to.deep.equal(world.clock.now());
    expect(after.former?.[0]?.certificates).to.deep.equal(before.active.certificates);
    expect(await rotate('access', 'local')).to.include({ kmsProvider: 'local' });
  });

  const rotations: [string, () => Promise<unknown>, string][] = [
    ['nothing', () => rotate('nothing'), 'not_found'],
    ['to an unknown provider', () => rotate('access', 'x'), 'invalid_input kmsProvider'],
    [
      'with certificates from outside',
      async () => {
        await create({ id: 'self', usageType: 'trustList', selfSigned: true });
        return rotate('self');
      },
      'conflict',
    ],
    [
      'with an expired authority',
      async () => {
        world.clock.forward((await get('access')).root?.notAfter.getTime() ?? 0);
        return rotate('access');
      },
      'conflict',
    ],
    [
      'with too many former keys that are still valid',
      async () => {
        const [chain, leaf] = [await get('access'), (await rotate('access')).former?.[0]];
        const former = Array.from({ length: MAX_PREVIOUS_LEAVES }, () => leaf as NonNullable<typeof leaf>);
        await world.write(({ keyChains }) => keyChains.put({ ...chain, former }));
        return rotate('access');
      },
      'conflict',
    ],
    [
      'that are rotated concurrently',
      async () => {
        const outcomes = await Promise.all([outcomeOf(rotate('access')), outcomeOf(rotate('access'))]);
        expect(outcomes).to.include('done');
        throw new Error(outcomes.find((outcome) => outcome !== 'done'));
      },
      'conflict',
    ],
  ];
  for (const [description, attempt, expected] of rotations) {
    it(`are not rotated ${description}: ${expected}`, async () => {
      const result = await outcomeOf(attempt()).catch((error: Error) => error.message);
      expect(result).to.equal(expected);
    });
  }

  it('request a certificate of their key from an external authority', async () => {
    const pem = await request('access', { country: 'DE', organization: 'Acme', dnsNames: ['door.example'] });
    expect(pem).to.match(/^-----BEGIN CERTIFICATE REQUEST-----/);
    const text = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64').toString('latin1');
    for (const name of ['door.example', 'DE', 'Acme']) expect(text).to.include(name);
    const point = Buffer.from((await get('access')).active.key.publicJwk.x, 'base64url').toString('latin1');
    expect(text).to.include(point);
    const plain = Buffer.from((await request('access')).replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
    expect(plain.toString('latin1')).to.include('id.example');
    expect(await outcomeOf(request('nothing'))).to.equal('not_found');
  });

  describe('are removed', () => {
    it('when they are unreferenced and another one exists, or nothing needs a signature', async () => {
      for (const id of INITIAL_IDS) await remove(id);
      expect(await ids()).to.deep.equal([]);
      expect(await outcomeOf(remove('access'))).to.equal('not_found');
    });

    it('with their key, and all certificates of it', async () => {
      const { active } = await get('access');
      await world.write(async ({ keyChains }) =>
        keyChains.add({ ...(await keyChains.get('access')), id: 'again', active, createdAt: new Date() }),
      );
      expect(await outcomeOf(removeKey('again')), 'the key has the name of its first chain').to.equal('not_found');
      await removeKey('access');
      expect(await ids()).to.deep.equal(INITIAL_IDS.slice(1));
      expect(await outcomeOf(removeKey('access'))).to.equal('not_found');
    });

    const references: [string, string, () => Promise<unknown>][] = [
      ['a credential configuration', 'signing', () => names.credential('signing')],
      ['a presentation configuration', 'access', () => names.presentation({ accessKeyChainId: 'access' })],
      ['a trust anchor', 'signing', () => names.presentation({ trustAnchors: [{ keyChainId: 'signing' }] })],
      ['how the tenant issues', 'signing', () => names.issuance({ signingKeyId: 'signing' })],
      ['a trust list', 'trust-list', () => names.trustList({ keyChainId: 'trust-list' })],
      [
        'an entity of a trust list',
        'signing',
        () =>
          names.trustList({
            entities: [{ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'A', country: 'DE', streetAddress: 'Weg 1' } }],
          }),
      ],
      ['no document, but credentials need the last one of its usage', 'signing', () => names.credential()],
      ['no document, but status lists need the last one of its usage', 'status-list', () => names.credential('signing', true)],
      ['no document, but requests need the last one of its usage', 'access', () => names.presentation()],
      ['no document, but a trust list needs the last one of its usage', 'trust-list', () => names.trustList({})],
    ];
    for (const [description, id, prepare] of references) {
      it(`not while named by ${description}: conflict`, async () => {
        await prepare();
        expect(await outcomeOf(remove(id))).to.equal('conflict');
        expect(await outcomeOf(removeKey(id))).to.equal('conflict');
        const otherUsages = ['access', 'signing', 'statusList', 'trustList'].filter((usage) => usage.toLowerCase() !== id.replace('-', ''));
        const isNamed = !description.startsWith('no document') && description !== 'a trust anchor' && !description.startsWith('an entity');
        if (isNamed) expect(await outcomeOf(update(id, { usages: otherUsages.slice(0, 1) }))).to.equal('conflict');
        expect(await ids()).to.deep.equal(INITIAL_IDS);
      });
    }
  });
});
