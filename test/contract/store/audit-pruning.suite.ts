import { expect } from 'chai';
import type { Anchor } from '../../../application/audit/chain-reports.ts';
import { PruneAuditLog } from '../../../application/audit/prune-audit-log.ts';
import { VerifyAuditLog } from '../../../application/audit/verify-audit-log.ts';
import type { Log } from '../../../application/ports/log.ts';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import type { Store } from '../../../application/ports/store.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { rawSql } from '../../support/databases.ts';
import { aKeyChain, aTenant } from './builders.ts';

const DAY_MS = 86_400_000;

/** What is left of an audit log whose oldest entries are kept no longer, and that it can be verified all the same. */
export function describePruning(open: () => { store: Store; url: string; macs: Macs }): void {
  describe('an audit log that is kept for some days', () => {
    const by = { clientId: 'root', tenantId: null };
    let store: Store;
    let url: string;
    let macs: Macs;
    let tenantId: TenantId;
    let errors: { message: string; fields: object | undefined }[];

    beforeEach(async () => {
      ({ store, url, macs } = open());
      errors = [];
      const tenant = aTenant();
      tenantId = tenant.id;
      await store.forService(({ tenants }) => tenants.add(tenant), { by });
      for (let i = 0; i < 9; i++) await write();
    });
    afterEach(() => store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' }));

    const write = () =>
      store.forTenant(tenantId, (own) => own.keyChains.put(aKeyChain(tenantId, 'keys')), { by: 'system' });
    /** Entries up to this one are from so many days ago. Their codes cover the time, so it is `now` that moves. */
    const prune = async (daysLater: number, auditKeepDays: number | null = 30, ownDaysLater = daysLater) => {
      const log = {
        error: (message: string, fields?: object) => errors.push({ message, fields }),
      } as unknown as Log;
      const settings = { auditKeepDays: auditKeepDays ?? undefined } as unknown as ServiceSettings;
      const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);
      const clock = { now: () => inDays(ownDaysLater) };
      const pruning = new PruneAuditLog({ store, settings, log, clock, auditCodes: { macs } });
      let after: TenantId | undefined;
      do {
        after = (await pruning.execute(inDays(daysLater), 2, after)).last;
      } while (after !== undefined);
    };
    /** The log of this tenant alone, 32 days later. */
    const pruneWith = async (own: Store) => {
      const later = new Date(Date.now() + 32 * DAY_MS);
      let after: TenantId | undefined;
      for (;;) {
        const [next] = await store.maintenance.oldAuditLogs(later, 1, after);
        if (next === undefined || next === tenantId) break;
        after = next;
      }
      const pruning = new PruneAuditLog({
        ...{ store: own, settings: { auditKeepDays: 30 } as ServiceSettings, auditCodes: { macs } },
        clock: { now: () => later },
        log: { error: () => {} } as unknown as Log,
      });
      return pruning.execute(later, 1, after);
    };
    const verify = (anchor?: Anchor) => new VerifyAuditLog({ store, macs }).verify(tenantId, anchor);
    const sequences = async () =>
      (await store.forTenant(tenantId, ({ audit }) => audit.list({ ascending: true, limit: 100 }))).map(
        ({ sequence }) => sequence,
      );
    const tamper = (text: string) => rawSql(url, (run) => run(text.replaceAll("'T'", `'${tenantId}'`)));

    it('stays whole for ever where nothing else is configured', async () => {
      await prune(40_000, null);
      expect(await sequences()).to.have.length(10);
    });

    it('loses its oldest entries, says so, and what is left is whole', async () => {
      const before = (await verify()).end;
      await prune(29);
      await prune(30.5);
      expect(await sequences(), 'a day more, so that there are not too many runs').to.have.length(10);
      await prune(32);
      const [pruned, ...more] = await store.forTenant(tenantId, ({ audit }) => audit.list({ limit: 9 }));
      expect(more).to.deep.equal([]);
      expect(pruned).to.include({ sequence: 11, actor: 'system', action: 'pruned', kind: 'audit-log' });
      expect(JSON.parse(pruned?.detail ?? '').changes).to.deep.equal([{ member: 'entries', before: 10 }]);
      const { end, fault, warning } = await verify();
      expect([end.sequence, fault, warning]).to.deep.equal([11, undefined, undefined]);
      expect((await verify(before)).fault, 'the last one that went').to.equal(undefined);
      await write();
      await prune(70);
      expect(await sequences(), 'and again').to.deep.equal([13]);
      expect((await verify()).fault).to.equal(undefined);
    });

    it('is not lost to one clock that is years ahead, be it the database’s or the process’s', async () => {
      await prune(4_000, 30, 0);
      await prune(0, 30, 4_000);
      expect(await sequences()).to.have.length(10);
    });

    it('says so to who expects an entry that went, and still finds another chain', async () => {
      const kept = (await verify()).end;
      await write();
      await prune(32);
      const report = await verify(kept);
      expect(report.fault).to.equal(undefined);
      expect(report.warning).to.match(/^entry 10 is kept no longer.* from entry 12 on/);
      const last = { sequence: 11, hash: 'another' };
      expect((await verify(last)).fault?.kind, 'known by the log of the service').to.equal('unexpected');
    });

    it('shows entries that somebody else took away, also right behind those that went', async () => {
      await prune(32);
      for (let i = 0; i < 3; i++) await write();
      await tamper("delete from audit_entries where tenant_id = 'T' and sequence <= 12");
      const { fault } = await verify();
      expect([fault?.kind, fault?.sequence]).to.deep.equal(['removed', 11]);
    });

    it('keeps what is not as it was written: no fault is covered up by its age', async () => {
      await tamper("update audit_entries set actor = 'nobody' where tenant_id = 'T' and sequence = 4");
      await prune(32);
      expect(await sequences()).to.have.length(10);
      expect(errors.map(({ fields }) => fields)).to.deep.include({
        ...{ tenantId, kind: 'altered' },
        message: 'entry 4 was altered or put there by somebody else, or one before it was taken away',
      });
    });

    it('goes on where a run was broken off after it was noted', async () => {
      const broken = {
        forService: store.forService.bind(store),
        forTenant: store.forTenant.bind(store),
        maintenance: {
          ...store.maintenance,
          removeAuditEntries: () => Promise.reject(new Error('the process is dead')),
        },
      } as unknown as Store;
      const failure = await pruneWith(broken).catch((error: unknown) => error);
      expect(String(failure)).to.include('the process is dead');
      expect(await sequences()).to.have.length(11);
      expect((await verify()).fault, 'with what is still there').to.equal(undefined);
      await prune(32);
      expect((await verify()).fault).to.equal(undefined);
      expect(await sequences()).to.deep.equal([12]);
    });

    it('is not pruned where the tenant was removed and made anew while its log was read', async () => {
      const made = { ...aTenant(), id: tenantId };
      const racing = {
        forTenant: store.forTenant.bind(store),
        maintenance: store.maintenance,
        forService: async (work: never, writing: never) => {
          if (writing !== undefined) {
            await store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' });
            await store.maintenance.removeRemains(new Date(Date.now() + DAY_MS), 10_000);
            await store.forService(({ tenants }) => tenants.add(made), { by });
          }
          return store.forService(work, writing);
        },
      } as unknown as Store;
      const failure = await pruneWith(racing).catch((error: unknown) => error);
      expect(String(failure)).to.include('the log has changed');
      const { end, fault } = await verify();
      expect([end.sequence, fault]).to.deep.equal([1, undefined]);
    });

    it('is another one for a tenant that was made anew', async () => {
      await prune(32);
      await store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' });
      await store.maintenance.removeRemains(new Date(Date.now() + DAY_MS), 10_000);
      await store.forService(({ tenants }) => tenants.add({ ...aTenant(), id: tenantId }), { by });
      const { end, fault } = await verify();
      expect([end.sequence, fault]).to.deep.equal([1, undefined]);
    });
  });
}
