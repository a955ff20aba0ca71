import { expect } from 'chai';
import { CreateCertificate } from '../../../application/keys/certificates.ts';
import { CreateKeyChain } from '../../../application/keys/key-chains.ts';
import { MoveKeyChains } from '../../../application/keys/move-key-chains.ts';
import type { SigningKey } from '../../../application/ports/kms.ts';
import { KeyChainCreation } from '../../../domain/keys/key-chain-input.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';
import { type AdministrationWorld, anAdministration } from '../administration/kit.ts';
import { ACME } from '../administration/world.ts';

/** What happens to keys when two things are done with them at the same moment. */
describe('Keys that move while something else is done', () => {
  let world: AdministrationWorld;
  /** Ids of keys at the provider that keeps them elsewhere. */
  let there: Set<string>;
  const caller = () => world.caller(['issuance:manage', 'presentation:manage']);

  beforeEach(async () => {
    world = await anAdministration();
    there = new Set();
    let count = 0;
    const { kms } = world;
    const [providers, generate] = [kms.providers.bind(kms), kms.generate.bind(kms)];
    kms.providers = () => {
      const [local] = providers();
      if (local === undefined) throw new Error('no provider');
      return [local, { ...local, name: 'house', type: 'vault', default: false }];
    };
    /** What signs for them. */
    const locals = new Map<string, SigningKey>();
    const made = (key: SigningKey & { readonly publicJwk: PublicJwk }) => {
      const keyId = `key-${count++}`;
      there.add(keyId);
      locals.set(keyId, key);
      return { handle: { ...key.handle, kms: 'house', keyId }, publicJwk: key.publicJwk };
    };
    kms.generate = async (tenantId, algorithm, provider) =>
      provider === 'house'
        ? made({ tenantId, ...(await generate(tenantId, algorithm)) })
        : generate(tenantId, algorithm);
    kms.takeOver = async ({ publicJwk, ...key }: SigningKey) => {
      if (publicJwk === undefined) throw new Error('no public half');
      return made({ ...key, publicJwk });
    };
    const sign = kms.sign.bind(kms);
    kms.sign = (key, data) => sign(locals.get(key.handle.keyId) ?? key, data);
    kms.remove = async ({ handle }) => void there.delete(handle.keyId);
  });

  const list = () => world.store.forTenant(ACME, ({ keyChains }) => keyChains.list());
  const rootOf = async (id: string) => (await list()).find((chain) => chain.id === id)?.root?.key.handle;
  /** What a migration does to the authority of a key chain. */
  const moveAuthority = (id: string) =>
    world.write(async ({ keyChains }) => {
      const chain = await keyChains.get(id);
      if (chain.root === undefined) throw new Error('no authority');
      const { handle, publicJwk } = chain.root.key;
      const key = { handle: { ...handle, kms: 'house', keyId: 'authority' }, publicJwk };
      await keyChains.put({ ...chain, root: { ...chain.root, key } });
    });
  /** Moves it in the moment in which a certificate is made. */
  const meanwhile = (id: string) => {
    const { certificateAuthority } = world;
    const issue = certificateAuthority.issue.bind(certificateAuthority);
    let isMoved = false;
    certificateAuthority.issue = async (...wanted) => {
      const issued = await issue(...wanted);
      if (!isMoved) {
        isMoved = true;
        await moveAuthority(id);
      }
      return issued;
    };
  };

  it('leave no copy of an authority in the database with a key chain that is made under it', async () => {
    meanwhile('signing');
    const wanted = { id: 'second', usageType: 'statusList', rootKeyChainId: 'signing' };
    await new CreateKeyChain(world).execute(caller(), KeyChainCreation.parse(wanted));
    expect(await rootOf('second')).to.deep.equal(await rootOf('signing'));
    const sealed = (await list()).find(({ id }) => id === 'second')?.root?.key.sealedKey;
    expect(sealed).to.equal(undefined);
  });

  it('leave no copy of an authority in the database with another certificate of a key', async () => {
    meanwhile('signing');
    const wanted = { keyId: 'signing', id: 'second', certUsageTypes: ['signing' as const] };
    await new CreateCertificate(world).execute(caller(), wanted);
    expect(await rootOf('second')).to.deep.equal(await rootOf('signing'));
  });

  it('are nowhere twice when the tenant is moved twice at once', async () => {
    const move = async () => {
      for await (const moved of new MoveKeyChains(world).execute(ACME, 'house')) void moved;
    };
    await world.write(async ({ tenant }) => tenant.save({ ...(await tenant.get()), kms: 'house' }));
    // The second one is through with everything while the first one takes over a key.
    const takeOver = world.kms.takeOver;
    let isFirst = true;
    world.kms.takeOver = async (...wanted) => {
      const taken = await takeOver(...wanted);
      if (isFirst) {
        isFirst = false;
        await move();
      }
      return taken;
    };
    await move();
    const used = (await list()).flatMap(({ active, root }) => [
      active.key.handle.keyId,
      ...(root === undefined ? [] : [root.key.handle.keyId]),
    ]);
    const rest = (await list()).flatMap(({ former = [] }) => former.map(({ key }) => key.handle.keyId));
    expect([...there].filter((id) => !used.includes(id) && !rest.includes(id))).to.deep.equal([]);
    expect(used.filter((id) => !there.has(id))).to.deep.equal([]);
  });
});
