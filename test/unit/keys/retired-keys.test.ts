import { expect } from 'chai';
import { DeleteKeyChain, RotateKeyChain } from '../../../application/keys/key-chains.ts';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { DestroyRetiredKeys } from '../../../application/keys/retired-keys.ts';
import type { SigningKey } from '../../../application/ports/kms.ts';
import { withEachKey } from '../../../domain/keys/kept-keys.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { type AdministrationWorld, anAdministration } from '../administration/kit.ts';
import { ACME } from '../administration/world.ts';

/** Keys that nothing needs any more, at a provider of which nothing is known but what it is asked to destroy. */
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

  /** The same key chain with its keys elsewhere: they have no sealed half here. */
  const elsewhere = (chain: KeyChain): KeyChain =>
    withEachKey(chain, ({ handle, publicJwk }) => ({ handle, publicJwk }));
  const put = async (id: string, change: Partial<KeyChain> = {}) => {
    const signing = await world.store.forTenant(ACME, ({ keyChains }) => keyChains.get('signing'));
    const chain = elsewhere({ ...signing, ...change, id });
    await world.store.forTenant(ACME, ({ keyChains }) => keyChains.put(chain), { by: 'system' });
    return chain;
  };
  const waiting = async () =>
    (await world.store.maintenance.retiredKeys(100)).map(({ handle }) => handle.keyId);

  it('are destroyed with their key chain, but for those that another one has', async () => {
    const { active, root } = await put('gone');
    await put('stays', {
      active: { ...active, key: { ...active.key, handle: { ...active.key.handle, keyId: 'other' } } },
    });
    await new DeleteKeyChain(world).execute(caller(), 'gone');
    expect(destroyed).to.deep.equal([active.key.handle.keyId]);
    expect(destroyed).to.not.include(root?.key.handle.keyId);
    expect(await waiting()).to.deep.equal([]);
  });

  it('wait while the provider does not answer, and the removal goes through', async () => {
    const { active, root } = await put('gone');
    isDown = true;
    await new DeleteKeyChain(world).execute(caller(), 'gone');
    expect(await waiting()).to.have.members([active.key.handle.keyId, root?.key.handle.keyId]);
    expect(await new DestroyRetiredKeys(world).execute(100)).to.equal(0);
    isDown = false;
    expect(await new DestroyRetiredKeys(world).execute(100)).to.equal(2);
    expect(await waiting()).to.deep.equal([]);
    expect(await new DestroyRetiredKeys(world).execute(100)).to.equal(0);
    expect(destroyed).to.have.length(2);
  });

  it('that cannot be destroyed keep no other from it, at their provider or elsewhere', async () => {
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
    expect((await waiting())[0]).to.equal('poison');
    // One run looks at one key only.
    for (let run = 0; run < 4; run++) await new DestroyRetiredKeys(world).execute(1);
    expect(await waiting()).to.deep.equal(['poison']);
    expect(destroyed).to.have.members([active.key.handle.keyId, root?.key.handle.keyId]);
  });

  it('that cannot be destroyed keep no other one of the same run from it', async () => {
    const { active } = await put('gone');
    isDown = true;
    await new DeleteKeyChain(world).execute(caller(), 'gone');
    const [first] = await waiting();
    isDown = false;
    const { remove } = world.kms;
    world.kms.remove = async (key: SigningKey) => {
      if (key.handle.keyId === first) throw new Failure('unavailable', 'this key cannot be destroyed');
      await remove(key);
    };
    expect(await new DestroyRetiredKeys(world).execute(100)).to.equal(1);
    expect(active.key.handle.kms).to.equal('local');
  });

  it('outlive the tenant that had them until they are destroyed', async () => {
    const { active } = await put('gone');
    isDown = true;
    await world.store.forService(({ tenants }) => tenants.remove(ACME), { by: 'system' });
    expect(await waiting()).to.include(active.key.handle.keyId);
    isDown = false;
    await new DestroyRetiredKeys(world).execute(100);
    expect(destroyed).to.include(active.key.handle.keyId);
  });

  it('stay after a rotation as long as anything rests on what they signed', async () => {
    const signing = await world.store.forTenant(ACME, ({ keyChains }) => keyChains.get('signing'));
    const { active, root } = await put('kept');
    // The authority can sign here.
    const { root: own } = signing;
    if (own === undefined || root === undefined) throw new Error('no authority');
    const chain = { ...signing, id: 'kept', active, root: own };
    await world.store.forTenant(ACME, ({ keyChains }) => keyChains.put(chain), { by: 'system' });
    const { keyId } = active.key.handle;
    const { chain: rotated } = await new RotateKeyChain(world).execute(caller(), 'kept', {});
    expect(rotated.former?.map(({ key }) => key.handle.keyId)).to.deep.equal([keyId]);
    expect(await waiting()).to.not.include(keyId);

    world.clock.forward(366 * 24 * 3600 * 1000);
    await new RenewKeyChains(world).execute(world.clock.now(), 10);
    expect(await waiting()).to.include(keyId);
    await new DestroyRetiredKeys(world).execute(100);
    expect(destroyed).to.include(keyId);
  });
});
