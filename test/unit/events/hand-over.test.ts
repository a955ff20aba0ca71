import { expect } from 'chai';
import { CreateKeyChain } from '../../../application/keys/key-chains.ts';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { Log } from '../../../application/ports/log.ts';
import type { Task } from '../../../application/ports/work-queue.ts';
import { RenewTrustLists } from '../../../application/trust-lists/renew-trust-lists.ts';
import { TrustListPublisher } from '../../../application/trust-lists/trust-list-publisher.ts';
import { CreateTrustList, GetTrustList } from '../../../application/trust-lists/trust-lists.ts';
import { ACME, aWorld, type World } from '../administration/world.ts';

const DAYS = 24 * 60 * 60 * 1000;

class SilentLog extends Log {
  override info(): void {}
  override warn(): void {}
  override error(): void {}
}

describe('Work that any process may do', () => {
  let world: World;
  let tasks: Task[];
  let isTaken: boolean;
  const offer = async (task: Task) => {
    tasks.push(task);
    return isTaken;
  };
  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    tasks = [];
    isTaken = true;
  });

  describe('on trust lists', () => {
    let renewal: RenewTrustLists;
    const caller = () => world.caller(['issuance:manage']);
    const number = async (id: string) => (await new GetTrustList(world).execute(caller(), id)).sequenceNumber;
    const run = () => renewal.execute(world.clock.now(), 100, undefined, offer);

    beforeEach(async () => {
      const trustListPublisher = new TrustListPublisher(world);
      renewal = new RenewTrustLists({ ...world, log: new SilentLog(), trustListPublisher });
      const entities = [
        {
          type: 'internal' as const,
          issuerKeyChainId: 'signing',
          info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' },
        },
      ];
      await new CreateTrustList({ ...world, trustListPublisher }).execute(caller(), { id: 'list', entities });
    });

    it('is offered for each list that is due, and for no other', async () => {
      expect((await run()).renewed).to.equal(0);
      expect(tasks).to.deep.equal([]);
      world.clock.forward(21 * DAYS);
      expect((await run()).renewed).to.equal(0);
      expect(tasks.map(({ type, tenantId }) => [type, tenantId])).to.deep.equal([['trust-list', ACME]]);
      expect(await number('list'), 'nobody did it yet').to.equal(1);
    });

    it('is done here when nobody takes it', async () => {
      world.clock.forward(21 * DAYS);
      isTaken = false;
      expect((await run()).renewed).to.equal(1);
      expect(await number('list')).to.equal(2);
    });

    it('is done once, however often a task comes', async () => {
      world.clock.forward(21 * DAYS);
      await run();
      const [task] = tasks;
      if (task?.type !== 'trust-list') throw new Error('another task');
      expect([await renewal.renew(task), await renewal.renew(task)]).to.deep.equal([true, false]);
      expect(await number('list')).to.equal(2);
      expect(await renewal.renew({ ...task, id: 'gone' }), 'of a list that is gone').to.equal(false);
    });
  });

  describe('on key chains', () => {
    let renewal: RenewKeyChains;
    const run = () => renewal.execute(world.clock.now(), 100, undefined, offer);

    beforeEach(async () => {
      renewal = new RenewKeyChains({ ...world, log: new SilentLog() });
      const chain = {
        id: 'turning',
        usageType: 'signing' as const,
        rotationEnabled: true,
        rotationIntervalDays: 30,
      };
      await new CreateKeyChain(world).execute(world.caller(['issuance:manage']), chain);
    });

    it('is offered for each tenant that has some, and for no other', async () => {
      await run();
      expect(tasks).to.deep.equal([]);
      world.clock.forward(31 * DAYS);
      expect(await run()).to.include({ rotated: 0, renewed: 0 });
      expect(tasks).to.deep.equal([{ type: 'key-chains', tenantId: ACME }]);
    });

    it('is done here when nobody takes it, and once, however often a task comes', async () => {
      world.clock.forward(31 * DAYS);
      isTaken = false;
      expect((await run()).rotated).to.equal(1);
      expect(await renewal.renew(ACME, world.clock.now())).to.include({ rotated: 0, renewed: 0 });
      world.clock.forward(31 * DAYS);
      const done = [
        await renewal.renew(ACME, world.clock.now()),
        await renewal.renew(ACME, world.clock.now()),
      ];
      expect(done.map(({ rotated }) => rotated)).to.deep.equal([1, 0]);
    });
  });
});
