import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { toCertificateView } from '../../../adapters/http/keys/certificate.view.ts';
import { toKeyChainView } from '../../../adapters/http/keys/key-chain.view.ts';
import type { TenantCaller } from '../../../application/caller.ts';
import { CreateCertificate, FindCertificates } from '../../../application/keys/certificates.ts';
import { CreateKeyChain, DeleteKeyChain, RotateKeyChain, UpdateKeyChain } from '../../../application/keys/key-chains.ts';
import { MoveKeyChains } from '../../../application/keys/move-key-chains.ts';
import { parseCertificates } from '../../../application/keys/parse-certificates.ts';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { DestroyRetiredKeys } from '../../../application/keys/retired-keys.ts';
import type { SigningKey } from '../../../application/ports/kms.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import type { KeyChain, KeyUsage } from '../../../domain/keys/key-chain.ts';
import { CertificateCreation, KeyChainCreation } from '../../../domain/keys/key-chain-input.ts';
import { mapKeys } from '../../../domain/keys/retired-keys.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';
import { ACME, type AdministrationWorld, anAdministration, aWorld, codeOf, type World } from '../administrators.ts';

describe('key chains of a tenant', () => {
  let world: World;
  let caller: TenantCaller;
  const chainOf = (id: string) => world.store.forTenant(ACME, ({ keyChains }) => keyChains.get(id));

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    caller = world.caller(['issuance:manage', 'presentation:manage']);
  });

  it('are created for one or several usages, without returning the private key', async () => {
    const body = KeyChainCreation.parse({ id: 'both', usages: ['signing', 'access', 'signing'] });
    const chain = await new CreateKeyChain(world).execute(caller, body);
    expect(toKeyChainView(chain)).to.deep.include({ usages: ['signing', 'access'], usageType: 'signing' });
    expect(JSON.stringify(toKeyChainView(chain))).to.not.match(/"d"|sealed/);
    expect(JSON.stringify(toCertificateView(chain, [chain]))).to.not.match(/"d"|sealed/);
    expect(await codeOf(new CreateKeyChain(world).execute(caller, body))).to.equal('conflict');
  });

  it('reject reserved names, and two properties for the usage', () => {
    const invalidBodies = [{ id: 'providers', usageType: 'access' }, { usageType: 'access', usages: ['access'] }, {}];
    for (const body of invalidBodies) expect(KeyChainCreation.safeParse(body).success).to.equal(false);
  });

  it('are kept while a configuration names them', async () => {
    const now = world.clock.now();
    await world.store.forTenant(
      ACME,
      ({ presentationConfigurations }) =>
        presentationConfigurations.put({
          id: 'age',
          accessKeyChainId: 'access',
          trustAnchors: [{ keyChainId: 'signing' }],
          createdAt: now,
          updatedAt: now,
        } as unknown as Parameters<typeof presentationConfigurations.put>[0]),
      { by: 'system' },
    );
    const remove = new DeleteKeyChain(world);
    expect(await codeOf(remove.execute(caller, 'access'))).to.equal('conflict');
    expect(await codeOf(remove.execute(caller, 'signing'))).to.equal('conflict');
    expect(await codeOf(remove.execute(caller, 'nothing'))).to.equal('not_found');
    await remove.execute(caller, 'trust-list');
    const update = new UpdateKeyChain(world);
    expect(await codeOf(update.execute(caller, 'access', { usages: ['signing'] }))).to.equal('conflict');
    const usages: KeyUsage[] = ['signing', 'trustList'];
    const wider = await update.execute(caller, 'signing', { usages, description: 'x' });
    expect(wider).to.deep.include({ usages, description: 'x' });
    expect(await update.execute(caller, 'signing', { description: null })).to.not.have.property('description');
  });

  it('can have several certificates of one key, with the id of the first', async () => {
    world.clock.forward(1);
    const body = CertificateCreation.parse({ keyId: 'signing', certUsageTypes: ['trustList'], id: 'again' });
    const { chain } = await new CreateCertificate(world).execute(caller, body);
    const first = await chainOf('signing');
    expect(chain.active.key).to.deep.equal(first.active.key);
    expect(chain.active.certificates).to.not.deep.equal(first.active.certificates);
    for (const keyId of ['signing', 'again']) {
      const { found: signingFiles, all } = await new FindCertificates(world).execute(caller, { keyId });
      const views = signingFiles.map((chain) => toCertificateView(chain, all));
      expect(views.map(({ id }) => id)).to.have.members(['signing', 'again']);
      expect(views.map((view) => view.keyId)).to.deep.equal(['signing', 'signing']);
    }
    const unknown = CertificateCreation.parse({ keyId: 'nothing', certUsageTypes: ['access'] });
    expect(await codeOf(new CreateCertificate(world).execute(caller, unknown))).to.equal('not_found');
  });

  describe('with external certificates', () => {
    let chain: KeyChain;
    const pem = (...certificates: (string | undefined)[]) => writePemCertificates(certificates.filter((chain) => chain !== undefined));
    const read = (text: string | string[], changes: { chain?: KeyChain; now?: Date } = {}) =>
      codeOf(() =>
        parseCertificates(
          text,
          { key: (changes.chain ?? chain).active.key.publicJwk, usages: ['signing'] },
          changes.now ?? world.clock.now(),
        ),
      );

    beforeEach(async () => {
      chain = await chainOf('signing');
    });

    it('accept the leaf and its issuer in order, and omit the root', () => {
      const [leaf] = chain.active.certificates;
      const root = chain.root?.certificate;
      const { certificates, notAfter } = parseCertificates(
        [pem(leaf), pem(root)],
        { key: chain.active.key.publicJwk, usages: ['signing'] },
        world.clock.now(),
      );
      expect(certificates).to.deep.equal([leaf]);
      expect(notAfter).to.deep.equal(chain.active.notAfter);
    });

    it('reject another key, another order, another issuer, expiry, a self-signed leaf and invalid text', async () => {
      const accessChain = await chainOf('access');
      const [leaf] = chain.active.certificates;
      const root = chain.root;
      expect(await read(pem(leaf))).to.equal(undefined);
      expect(await read(pem(accessChain.active.certificates[0]))).to.equal('invalid_input');
      expect(await read(pem(root?.certificate, leaf))).to.equal('invalid_input');
      expect(await read(pem(leaf, accessChain.root?.certificate))).to.equal('invalid_input');
      expect(await read(pem(leaf), { now: chain.active.notAfter })).to.equal('invalid_input');
      expect(await read(pem(leaf), { now: new Date('2020-01-01') })).to.equal('invalid_input');
      expect(await read('no certificate')).to.equal('invalid_input');
      if (root === undefined) throw new Error('no root');
      const selfSigned = { ...chain, active: { ...chain.active, key: root.key } };
      expect(await read(pem(root.certificate), { chain: selfSigned })).to.equal('invalid_input');
    });
  });
});

/** Concurrent changes of keys. */
describe('keys that are migrated during other changes', () => {
  let world: AdministrationWorld;
  /** Ids of the keys at the remote provider. */
  let remoteIds: Set<string>;
  const caller = () => world.caller(['issuance:manage', 'presentation:manage']);

  beforeEach(async () => {
    world = await anAdministration();
    remoteIds = new Set();
    let count = 0;
    const { kms } = world;
    const [providers, generate] = [kms.providers.bind(kms), kms.generate.bind(kms)];
    kms.providers = () => {
      const [local] = providers();
      if (local === undefined) throw new Error('no provider');
      return [local, { ...local, name: 'house', type: 'vault', default: false }];
    };
    /** Local keys that sign in place of the remote ones. */
    const locals = new Map<string, SigningKey>();
    const storeRemotely = (key: SigningKey & { readonly publicJwk: PublicJwk }) => {
      const keyId = `key-${count++}`;
      remoteIds.add(keyId);
      locals.set(keyId, key);
      return { handle: { ...key.handle, kms: 'house', keyId }, publicJwk: key.publicJwk };
    };
    kms.generate = async (tenantId, algorithm, provider) =>
      provider === 'house' ? storeRemotely({ tenantId, ...(await generate(tenantId, algorithm)) }) : generate(tenantId, algorithm);
    kms.copyToProvider = async ({ publicJwk, ...key }: SigningKey) => {
      if (publicJwk === undefined) throw new Error('no public half');
      return storeRemotely({ ...key, publicJwk });
    };
    const sign = kms.sign.bind(kms);
    kms.sign = (key, data) => sign(locals.get(key.handle.keyId) ?? key, data);
    kms.remove = async ({ handle }) => void remoteIds.delete(handle.keyId);
  });

  const list = () => world.store.forTenant(ACME, ({ keyChains }) => keyChains.list());
  const rootOf = async (id: string) => (await list()).find((chain) => chain.id === id)?.root?.key.handle;
  /** Moves the authority of a key chain to the remote provider. */
  const moveAuthority = (id: string) =>
    world.write(async ({ keyChains }) => {
      const chain = await keyChains.get(id);
      if (chain.root === undefined) throw new Error('no authority');
      const { handle, publicJwk } = chain.root.key;
      const key = { handle: { ...handle, kms: 'house', keyId: 'authority' }, publicJwk };
      await keyChains.put({ ...chain, root: { ...chain.root, key } });
    });
  /** Moves the authority while a certificate is being issued. */
  const moveDuringIssuance = (id: string) => {
    const { certificateAuthority } = world;
    const issue = certificateAuthority.issue.bind(certificateAuthority);
    let isMoved = false;
    certificateAuthority.issue = async (...parameters) => {
      const certificate = await issue(...parameters);
      if (!isMoved) {
        isMoved = true;
        await moveAuthority(id);
      }
      return certificate;
    };
  };

  it('leave no copy of an authority with a key chain below it', async () => {
    moveDuringIssuance('signing');
    const parameters = { id: 'second', usageType: 'statusList', rootKeyChainId: 'signing' };
    await new CreateKeyChain(world).execute(caller(), KeyChainCreation.parse(parameters));
    expect(await rootOf('second')).to.deep.equal(await rootOf('signing'));
    const sealedKey = (await list()).find(({ id }) => id === 'second')?.root?.key.sealedKey;
    expect(sealedKey).to.equal(undefined);
  });

  it('leave no copy of an authority with another certificate of a key in the database', async () => {
    moveDuringIssuance('signing');
    const parameters = { keyId: 'signing', id: 'second', certUsageTypes: ['signing' as const] };
    await new CreateCertificate(world).execute(caller(), parameters);
    expect(await rootOf('second')).to.deep.equal(await rootOf('signing'));
  });

  it('are stored once when the tenant is moved twice concurrently', async () => {
    const move = async () => {
      for await (const moved of new MoveKeyChains(world).execute(ACME, 'house')) void moved;
    };
    await world.write(async ({ tenant }) => tenant.save({ ...(await tenant.get()), kms: 'house' }));
    // The second migration completes while the first one copies a key.
    const copyToProvider = world.kms.copyToProvider;
    let isFirst = true;
    world.kms.copyToProvider = async (...parameters) => {
      const copied = await copyToProvider(...parameters);
      if (isFirst) {
        isFirst = false;
        await move();
      }
      return copied;
    };
    await move();
    const usedIds = (await list()).flatMap(({ active, root }) => [
      active.key.handle.keyId,
      ...(root === undefined ? [] : [root.key.handle.keyId]),
    ]);
    const formerIds = (await list()).flatMap(({ former = [] }) => former.map(({ key }) => key.handle.keyId));
    expect([...remoteIds].filter((id) => !usedIds.includes(id) && !formerIds.includes(id))).to.deep.equal([]);
    expect(usedIds.filter((id) => !remoteIds.has(id))).to.deep.equal([]);
  });
});

/** Unused keys at a provider that only records which keys it must destroy. */
describe('keys at a provider', () => {
  let world: AdministrationWorld;
  let destroyed: string[];
  let isDown: boolean;
  const caller = () => world.caller(['issuance:manage', 'presentation:manage']);

  beforeEach(async () => {
    world = await anAdministration();
    destroyed = [];
    isDown = false;
    world.kms.remove = async ({ handle }: SigningKey) => {
      if (isDown) throw new Failure('unavailable', 'it does not answer');
      destroyed.push(handle.keyId);
    };
  });

  /** Returns the key chain with remote keys, which have no sealed private key. */
  const withRemoteKeys = (chain: KeyChain): KeyChain => mapKeys(chain, ({ handle, publicJwk }) => ({ handle, publicJwk }));
  const put = async (id: string, change: Partial<KeyChain> = {}) => {
    const signing = await world.store.forTenant(ACME, ({ keyChains }) => keyChains.get('signing'));
    const chain = withRemoteKeys({ ...signing, ...change, id });
    await world.store.forTenant(ACME, ({ keyChains }) => keyChains.put(chain), { by: 'system' });
    return chain;
  };
  const retiredIds = async () => (await world.store.maintenance.retiredKeys(100)).map(({ handle }) => handle.keyId);

  it('are destroyed with their key chain, except those of another key chain', async () => {
    const { active, root } = await put('gone');
    await put('stays', { active: { ...active, key: { ...active.key, handle: { ...active.key.handle, keyId: 'other' } } } });
    await new DeleteKeyChain(world).execute(caller(), 'gone');
    expect(destroyed).to.deep.equal([active.key.handle.keyId]);
    expect(destroyed).to.not.include(root?.key.handle.keyId);
    expect(await retiredIds()).to.deep.equal([]);
  });

  it('are destroyed later if the provider does not answer, and the removal succeeds', async () => {
    const { active, root } = await put('gone');
    isDown = true;
    await new DeleteKeyChain(world).execute(caller(), 'gone');
    expect(await retiredIds()).to.have.members([active.key.handle.keyId, root?.key.handle.keyId]);
    expect(await new DestroyRetiredKeys(world).execute(100)).to.equal(0);
    isDown = false;
    expect(await new DestroyRetiredKeys(world).execute(100)).to.equal(2);
    expect(await retiredIds()).to.deep.equal([]);
    expect(await new DestroyRetiredKeys(world).execute(100)).to.equal(0);
    expect(destroyed).to.have.length(2);
  });

  it('that cannot be destroyed do not delay the removal of others, at their provider or elsewhere', async () => {
    const { active, root } = await put('gone');
    const handle = { ...active.key.handle, keyId: 'poison' };
    const { remove } = world.kms;
    await put('poisoned', { active: { ...active, key: { ...active.key, handle } } });
    world.kms.remove = async (key: SigningKey) => {
      if (key.handle.keyId === 'poison') throw new Failure('unavailable', 'this key cannot be destroyed');
      await remove(key);
    };
    await new DeleteKeyChain(world).execute(caller(), 'poisoned');
    isDown = true;
    await new DeleteKeyChain(world).execute(caller(), 'gone');
    isDown = false;
    expect((await retiredIds())[0]).to.equal('poison');
    // Each run processes one key.
    for (let run = 0; run < 4; run++) await new DestroyRetiredKeys(world).execute(1);
    expect(await retiredIds()).to.deep.equal(['poison']);
    expect(destroyed).to.have.members([active.key.handle.keyId, root?.key.handle.keyId]);
  });

  it('that cannot be destroyed do not delay the removal of others in the same run', async () => {
    const { active } = await put('gone');
    isDown = true;
    await new DeleteKeyChain(world).execute(caller(), 'gone');
    const [first] = await retiredIds();
    isDown = false;
    const { remove } = world.kms;
    world.kms.remove = async (key: SigningKey) => {
      if (key.handle.keyId === first) throw new Failure('unavailable', 'this key cannot be destroyed');
      await remove(key);
    };
    expect(await new DestroyRetiredKeys(world).execute(100)).to.equal(1);
    expect(active.key.handle.kms).to.equal('local');
  });

  it('outlive their tenant until they are destroyed', async () => {
    const { active } = await put('gone');
    isDown = true;
    await world.store.forService(({ tenants }) => tenants.remove(ACME), { by: 'system' });
    expect(await retiredIds()).to.include(active.key.handle.keyId);
    isDown = false;
    await new DestroyRetiredKeys(world).execute(100);
    expect(destroyed).to.include(active.key.handle.keyId);
  });

  it('are kept after a rotation as long as their signatures are needed', async () => {
    const signing = await world.store.forTenant(ACME, ({ keyChains }) => keyChains.get('signing'));
    const { active, root } = await put('kept');
    // The authority has a local key.
    const { root: localRoot } = signing;
    if (localRoot === undefined || root === undefined) throw new Error('no authority');
    const chain = { ...signing, id: 'kept', active, root: localRoot };
    await world.store.forTenant(ACME, ({ keyChains }) => keyChains.put(chain), { by: 'system' });
    const { keyId } = active.key.handle;
    const { chain: rotated } = await new RotateKeyChain(world).execute(caller(), 'kept', {});
    expect(rotated.former?.map(({ key }) => key.handle.keyId)).to.deep.equal([keyId]);
    expect(await retiredIds()).to.not.include(keyId);

    world.clock.forward(366 * 24 * 3600 * 1000);
    await new RenewKeyChains(world).execute(world.clock.now(), 10);
    expect(await retiredIds()).to.include(keyId);
    await new DestroyRetiredKeys(world).execute(100);
    expect(destroyed).to.include(keyId);
  });
});

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Code that signs with a private key. */
const SIGNING_PATTERNS = [
  /import\s*(?:type\s*)?\{[^}]*(?<![\w.])sign\b[^}]*\}\s*from\s*'node:crypto'/,
  /\b(?:createSign|privateEncrypt|SignJWT|CompactSign|FlattenedSign|GeneralSign)\b/,
  /\bsubtle\.sign\b/,
];

/** Returns the product files that contain signing code. */
function signers(files: readonly { readonly path: string; readonly text: string }[]): string[] {
  return files.filter(({ text }) => SIGNING_PATTERNS.some((pattern) => pattern.test(text))).map(({ path }) => path);
}

describe('private keys', () => {
  it('sign only in key providers, so that a remote key is never bypassed', () => {
    const paths = globSync(
      ['domain', 'application', 'adapters', 'bootstrap', 'config'].map((layer) => `${layer}/**/*.ts`),
      { cwd: ROOT },
    );
    const files = paths.map((path) => ({ path, text: readFileSync(`${ROOT}/${path}`, 'utf8') }));
    expect(files.length).to.be.greaterThan(300);
    const signingFiles = signers(files);
    expect(signingFiles).to.include('adapters/kms/local/local-kms.ts');
    expect(signingFiles.filter((path) => !path.startsWith('adapters/kms/'))).to.deep.equal([]);
  });

  it('are reported when they sign elsewhere', () => {
    const signingCode = [
      "import { hash, sign } from 'node:crypto';",
      "import {\n  createHash,\n  sign as makeSignature,\n} from 'node:crypto';",
      "import { SignJWT } from 'jose';",
      'await webcrypto.subtle.sign(a, b, c)',
    ];
    for (const text of signingCode) expect(signers([{ path: 'planted.ts', text }]), text).to.have.length(1);
    expect(signers([{ path: 'x.ts', text: "import { signingKey } from './signing-key.ts';" }])).to.deep.equal([]);
  });
});
