import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import sinon from 'sinon';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { aClient } from '../contract/store/builders.ts';
import { TEST_CIPHER } from '../support/memory-store.ts';
import { ACME } from '../unit/verification/kit.ts';
import { anOffer, WalletWorld } from '../unit/wallet-kit.ts';

const BY = { by: 'system' } as const;

/** Used memory after a garbage collection, in MiB. */
function usedMemory(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

describe('concurrent configuration changes of a tenant', () => {
  let world: WalletWorld;
  beforeEach(async () => {
    world = await WalletWorld.open();
  });
  afterEach(() => sinon.restore());

  /** Adds latency to the database. */
  function slowDown(milliseconds: number): void {
    const { commit, read: readKeyChains } = world.store;
    sinon.stub(world.store, 'commit').callsFake(async (...parameters) => {
      await delay(milliseconds);
      return commit.apply(world.store, parameters);
    });
    sinon.stub(world.store, 'read').callsFake((tenantId) => {
      const reads = readKeyChains.call(world.store, tenantId);
      return { ...reads, state: () => delay(milliseconds).then(() => reads.state()) };
    });
  }

  /** Writes in a loop while `work` runs. @returns the number of writes. */
  async function countWritesDuring(write: (index: number) => Promise<void>, work: () => Promise<void>) {
    let isStopped = false;
    let writes = 0;
    const writeLoop = (async () => {
      while (!isStopped) {
        await write(writes++);
        await delay(1);
      }
    })();
    try {
      await work();
    } finally {
      isStopped = true;
      await writeLoop;
    }
    return writes;
  }

  const createOffers = async () => {
    for (let count = 0; count < 12; count++) await anOffer(world);
  };
  const configurations = async () => world.store.forTenant(ACME, ({ credentialConfigurations }) => credentialConfigurations.list());

  it('do not delay offers that use other kinds of resources', async () => {
    await anOffer(world);
    slowDown(5);
    const commits = world.store.commit as sinon.SinonStub;
    const writeCount = await countWritesDuring(
      () => world.store.forTenant(ACME, ({ clients }) => clients.add(aClient(ACME)), BY),
      createOffers,
    );
    expect(writeCount).to.be.above(12);
    expect(commits.callCount).to.be.below(28);
  });

  it('do not fail offers that use the changed resource', async () => {
    const [configuration] = await configurations();
    if (configuration === undefined) throw new Error('there is no configuration');
    slowDown(5);
    const writeCount = await countWritesDuring(
      (index) =>
        world.store.forTenant(
          ACME,
          ({ credentialConfigurations }) => credentialConfigurations.put({ ...configuration, description: `round ${index}` }),
          BY,
        ),
      createOffers,
    );
    expect(writeCount).to.be.above(12);
  });

  describe('with hundreds of key chains', () => {
    const CHAINS = 300;
    let chains: readonly KeyChain[];
    const readKeyChains = async () => (await world.caller()).tenant.keyChains();
    const change = (chain: KeyChain, index: number) =>
      world.store.forTenant(ACME, ({ keyChains }) => keyChains.put({ ...chain, description: `${index}` }), BY);

    beforeEach(async () => {
      const [firstChain] = await readKeyChains();
      if (firstChain === undefined) throw new Error('there is no key chain');
      const add = () =>
        world.store.forTenant(
          ACME,
          async ({ keyChains }) => {
            for (let count = 1; count < CHAINS; count++) await keyChains.put({ ...firstChain, id: `chain-${count}` });
          },
          BY,
        );
      await world.store.prepare('hundreds of key chains', add);
      chains = await readKeyChains();
    });

    it('only the changed key chain is read and decrypted again', async () => {
      const [, , chain] = chains;
      if (chain === undefined) throw new Error('there is no third key chain');
      await change(chain, 1);
      const openSpy = sinon.spy(TEST_CIPHER, 'open');
      const currentChains = await readKeyChains();
      expect(openSpy.callCount).to.equal(1);
      expect(currentChains).to.have.length(chains.length);
      expect(currentChains.find(({ id }) => id === chain.id)?.description).to.equal('1');
      expect(currentChains.filter((chain) => chains.includes(chain))).to.have.length(chains.length - 1);
    });

    it('the memory use is constant for any number of changes', async () => {
      const changeRepeatedly = async (count: number) => {
        for (let index = 0; index < count; index++) {
          const chain = chains[index % CHAINS];
          if (chain !== undefined) await change(chain, index);
          await readKeyChains();
        }
      };
      await changeRepeatedly(20);
      const memoryBefore = usedMemory();
      await changeRepeatedly(50);
      // A full copy of the key chains for each change would take 50 MB.
      expect(usedMemory() - memoryBefore).to.be.below(15);
    });
  });
});
