import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Store } from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { aConfiguration, addList, addTenant, aSession, aUse, failureOf } from './builders.ts';
import { stepsOf } from './steps.ts';

export function describeConcurrency(open: () => Store): void {
  describe('at the same time', () => {
    let store: Store;
    let tenantId: TenantId;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
    });

    it('a step survives a transaction that was open around it and rolled back', async () => {
      const session = aSession(tenantId);
      let step: Promise<unknown> = Promise.resolve();
      let inside = () => {};
      const entered = new Promise<void>((resolve) => {
        inside = resolve;
      });
      const broken = store.forTenant(
        tenantId,
        async (own) => {
          await own.credentialConfigurations.add(aConfiguration('one'));
          inside();
          await sleep(50);
          throw new Error('broken');
        },
        { by: 'system' },
      );
      const failure = failureOf(broken);
      await entered;
      step = stepsOf(store, tenantId).openSession(session);
      expect(String(await failure)).to.contain('broken');
      await step;
      expect(await stepsOf(store, tenantId).findSession(session.id)).to.deep.equal(session);
      const documents = await store.forTenant(tenantId, (own) => own.credentialConfigurations.list());
      expect(documents).to.deep.equal([]);
    });

    it('changes come to be whole or not at all, whatever becomes of those beside them', async () => {
      const sessions = Array.from({ length: 60 }, () => aSession(tenantId));
      const values = Array.from({ length: 20 }, () => aUse('c_nonce'));
      const answers = await Promise.all(
        sessions.map((session, index) => {
          // Three want each of the values, and each brings one of its own.
          const uses = [aUse('dpop_jti'), values[index % 20] ?? aUse()];
          return store.commit(tenantId, { opens: { session }, uses }, session.createdAt);
        }),
      );
      for (let value = 0; value < 20; value++) {
        const rivals = [answers[value], answers[value + 20], answers[value + 40]];
        expect(rivals.filter((answer) => answer?.done)).to.have.length(1);
        for (const answer of rivals)
          if (!answer?.done) expect(answer).to.deep.equal({ done: false, part: 'uses', kind: 'c_nonce' });
      }
      const steps = stepsOf(store, tenantId);
      for (const [index, { id }] of sessions.entries())
        expect((await steps.findSession(id)) !== undefined).to.equal(answers[index]?.done);
    });

    it('many steps and transactions, some of which fail, all come to their end', async () => {
      const list = await addList(store, tenantId);
      const work = Array.from({ length: 150 }, async (_, index) => {
        if (index % 3 === 0) {
          const failing = index % 2 === 0;
          const transaction = store.forTenant(
            tenantId,
            async (own) => {
              await own.credentialConfigurations.put(aConfiguration(`id-${index}`));
              await sleep(1);
              if (failing) throw new Error('broken');
            },
            { by: 'system' },
          );
          return failing ? failureOf(transaction) : transaction;
        }
        return stepsOf(store, tenantId).takeStatusRun(list, 1);
      });
      await Promise.all(work);
      expect((await stepsOf(store, tenantId).statusList(list.id))?.usedEntries).to.equal(100);
      const documents = await store.forTenant(tenantId, (own) => own.credentialConfigurations.list());
      expect(documents).to.have.length(25);
    });

    it('two transactions that read the same version do not both save', async () => {
      const save = (name: string) =>
        failureOf(
          store.forTenant(
            tenantId,
            async (own) => {
              const tenant = await own.tenant.get();
              await sleep(5);
              await own.tenant.save({ ...tenant, name });
            },
            { by: 'system' },
          ),
        );
      const tenant = await store.forTenant(tenantId, (own) => own.tenant.get());
      const stale = (name: string) =>
        failureOf(store.forTenant(tenantId, (own) => own.tenant.save({ ...tenant, name }), { by: 'system' }));
      const results = await Promise.all([stale('a'), stale('b'), stale('c')]);
      expect(results.filter((result) => result === 'conflict')).to.have.length(2);
      expect(await save('last')).to.equal('nothing failed');
    });
  });
}
