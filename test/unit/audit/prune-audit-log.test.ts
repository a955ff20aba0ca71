import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { PruneAuditLog } from '../../../application/audit/prune-audit-log.ts';
import type { Log } from '../../../application/ports/log.ts';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import type { Store } from '../../../application/ports/store.ts';
import { type AuditEntry, SYSTEM } from '../../../domain/audit/audit-entry.ts';
import { append } from '../../../domain/audit/chain.ts';
import { hmacs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';

const DAY_MS = 86_400_000;
const NOW = new Date('2026-06-01T00:00:00Z');
const ago = (days: number) => new Date(NOW.getTime() - days * DAY_MS);
const ACME = 'acme' as TenantId;
const macs = hmacs([{ id: 'k', key: createSecretKey(Buffer.alloc(32, 1)) }]);

/** A log with an entry from each of so many days ago. */
function logOf(...days: readonly number[]): readonly AuditEntry[] {
  const change = { action: 'changed', kind: 'tenant', target: 'acme', changes: [] } as const;
  const additions = days.map((day) => ({ by: SYSTEM, at: ago(day), change }) as const);
  return append(macs, ACME, { sequence: 0, hash: '' }, additions).entries;
}

describe('Pruning audit logs', () => {
  const error = sinon.fake();
  const prune = sinon.fake.resolves(undefined);
  const removed = sinon.fake.resolves(2);
  const due = sinon.fake.resolves([ACME]);
  beforeEach(() => [error, prune, removed, due].forEach((fake) => void fake.resetHistory()));

  const pruningOf = (entries: readonly AuditEntry[], auditKeepDays?: number, own = NOW) => {
    const store = {
      maintenance: { oldAuditLogs: due, removeAuditEntries: removed },
      forService: (work: (all: object) => unknown) => work({ audit: { list: async () => [], prune } }),
      forTenant: (_id: string, work: (all: object) => unknown) =>
        work({ audit: { list: async () => entries } }),
    } as unknown as Store;
    const settings = { auditKeepDays } as ServiceSettings;
    const log = { error } as unknown as Log;
    return new PruneAuditLog({ store, settings, log, clock: { now: () => own }, auditCodes: { macs } });
  };

  it('do nothing unless it is configured', async () => {
    expect(await pruningOf(logOf(99)).execute(NOW, 10)).to.deep.equal({ last: undefined, gone: 0 });
    expect(due.callCount).to.equal(0);
  });

  it('end with the last entry that is old enough, which is noted before anything goes', async () => {
    const entries = logOf(50, 40, 20, 45);
    expect(await pruningOf(entries, 30).execute(NOW, 10)).to.deep.equal({ last: undefined, gone: 2 });
    const { sequence, hash } = entries[1] as AuditEntry;
    expect(prune.firstCall.args).to.deep.equal([ACME, { sequence, hash }]);
    expect(removed.firstCall.args).to.deep.equal([ACME, 2, ago(30)]);
    expect(prune.calledBefore(removed)).to.equal(true);
    expect(due.firstCall.args, 'once a day at most').to.deep.equal([ago(31), 10, undefined]);
  });

  it('go by the earlier of two clocks', async () => {
    await pruningOf(logOf(50), 30).execute(new Date('2066-01-01T00:00:00Z'), 10);
    await pruningOf(logOf(50), 30, new Date('2066-01-01T00:00:00Z')).execute(NOW, 10);
    expect(due.args.map(([before]) => before)).to.deep.equal([ago(31), ago(31)]);
  });

  it('leave a log as it is that is not as it was written, and say so', async () => {
    const entries = logOf(50, 40).map((entry) => ({ ...entry, actor: 'somebody' }));
    expect((await pruningOf(entries, 30).execute(NOW, 10)).gone).to.equal(0);
    expect([prune.callCount, removed.callCount]).to.deep.equal([0, 0]);
    expect(error.firstCall.args[1]).to.include({ tenantId: ACME, kind: 'altered' });
  });

  it('go on behind the last of a full batch', async () => {
    expect((await pruningOf(logOf(50), 30).execute(NOW, 1)).last).to.equal(ACME);
  });
});
