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

/** Bytes in use when everything that can go is gone, in MiB. */
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

  /** As if the database were far away. */
  function slowDown(milliseconds: number): void {
    const { commit, read } = world.store;
    sinon.stub(world.store, 'commit').callsFake(async (...parameters) => {
      await delay(milliseconds);
      return commit.apply(world.store, parameters);
    });
    sinon.stub(world.store, 'read').callsFake((tenantId) => {
      const reads = read.call(world.store, tenantId);
      return { ...reads, state: () => delay(milliseconds).then(() => reads.state()) };
    });
  }

  /** Writes as fast as it can for as long as `work` takes. @returns how often it did. */
  async function writingDuring(write: (round: number) => Promise<void>, work: () => Promise<void>) {
    let isOver = false;
    let rounds = 0;
    const writing = (async () => {
      while (!isOver) {
        await write(rounds++);
        await delay(1);
      }
    })();
    try {
      await work();
    } finally {
      isOver = true;
      await writing;
    }
    return rounds;
  }

  const aDozenOffers = async () => {
    for (let count = 0; count < 12; count++) await anOffer(world);
  };
  const configurations = async () => world.store.forTenant(ACME, ({ credentialConfigurations }) => credentialConfigurations.list());

  it('do not delay offers that use other kinds of resources', async () => {
    await anOffer(world);
    slowDown(5);
    const commits = world.store.commit as sinon.SinonStub;
    const rounds = await writingDuring(() => world.store.forTenant(ACME, ({ clients }) => clients.add(aClient(ACME)), BY), aDozenOffers);
    expect(rounds).to.be.above(12);
    expect(commits.callCount).to.be.below(28);
  });

  it('do not fail offers that use the changed resource', async () => {
    const [card] = await configurations();
    if (card === undefined) throw new Error('there is no configuration');
    slowDown(5);
    const rounds = await writingDuring(
      (round) =>
        world.store.forTenant(
          ACME,
          ({ credentialConfigurations }) => credentialConfigurations.put({ ...card, description: `round ${round}` }),
          BY,
        ),
      aDozenOffers,
    );
    expect(rounds).to.be.above(12);
  });

  describe('with hundreds of key chains', () => {
    const CHAINS = 300;
    let chains: readonly KeyChain[];
    const read = async () => (await world.caller()).tenant.keyChains();
    const change = (chain: KeyChain, round: number) =>
      world.store.forTenant(ACME, ({ keyChains }) => keyChains.put({ ...chain, description: `${round}` }), BY);

    beforeEach(async () => {
      const [first] = await read();
      if (first === undefined) throw new Error('there is no key chain');
      const add = () =>
        world.store.forTenant(
          ACME,
          async ({ keyChains }) => {
            for (let count = 1; count < CHAINS; count++) await keyChains.put({ ...first, id: `chain-${count}` });
          },
          BY,
        );
      await world.store.prepare('hundreds of key chains', add);
      chains = await read();
    });

    it('only the changed key chain is read and decrypted again', async () => {
      const [, , chain] = chains;
      if (chain === undefined) throw new Error('there is no third key chain');
      await change(chain, 1);
      const opened = sinon.spy(TEST_CIPHER, 'open');
      const now = await read();
      expect(opened.callCount).to.equal(1);
      expect(now).to.have.length(chains.length);
      expect(now.find(({ id }) => id === chain.id)?.description).to.equal('1');
      expect(now.filter((other) => chains.includes(other))).to.have.length(chains.length - 1);
    });

    it('the memory use is constant for any number of changes', async () => {
      const rounds = async (count: number) => {
        for (let round = 0; round < count; round++) {
          const chain = chains[round % CHAINS];
          if (chain !== undefined) await change(chain, round);
          await read();
        }
      };
      await rounds(20);
      const before = usedMemory();
      await rounds(50);
      // A whole copy of the key chains for each change would be 50 MB.
      expect(usedMemory() - before).to.be.below(15);
    });
  });
});
