import { expect } from 'chai';
import { MasterCipher } from '../../../adapters/crypto/cipher.ts';
import { AUDIT_LOG } from '../../../adapters/persistence/audit-keys.ts';
import { OrmStore } from '../../../adapters/persistence/orm-store.ts';
import type { Anchor, ChainReport } from '../../../application/audit/chain-reports.ts';
import { PruneAuditLog } from '../../../application/audit/prune-audit-log.ts';
import { VerifyAuditLog } from '../../../application/audit/verify-audit-log.ts';
import type { Log } from '../../../application/ports/log.ts';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import type { Store } from '../../../application/ports/store.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { rawSql } from '../../support/databases.ts';
import { addList, addTenant, aKeyChain, aTenant, failureOf, NOW, openOffer } from './builders.ts';
import { credentialRevocation, sessionRemoval, stepsOf } from './steps.ts';

type Tampering = {
  readonly name: string;
  /** Statements of an attacker who has the database and no key; `T` stands for the identifier of the tenant. */
  readonly sql: readonly string[];
  /** The fault that verification finds, and its entry. */
  readonly finds: readonly [string, number];
};

const OF_TENANT = `where tenant_id = 'T'`;
const atSequence = (sequence: number) => `${OF_TENANT} and sequence = ${sequence}`;
const COLUMNS = 'tenant_id, sequence, at, actor, action, kind, target, detail, hash';

/** The chain has ten entries. */
const TAMPERINGS: readonly Tampering[] = [
  ...['actor', 'action', 'kind', 'target', 'detail', 'hash'].map(
    (column): Tampering => ({
      name: `another ${column}`,
      sql: [`update audit_entries set ${column} = ${column} || 'x' ${atSequence(5)}`],
      finds: ['altered', 5],
    }),
  ),
  { name: 'another time', sql: [`update audit_entries set at = at + 1 ${atSequence(5)}`], finds: ['altered', 5] },
  { name: 'the first entry altered', sql: [`update audit_entries set actor = 'x' ${atSequence(1)}`], finds: ['altered', 1] },
  { name: 'the last entry altered', sql: [`update audit_entries set actor = 'x' ${atSequence(10)}`], finds: ['altered', 10] },
  { name: 'the first entry removed', sql: [`delete from audit_entries ${atSequence(1)}`], finds: ['removed', 1] },
  { name: 'an entry removed', sql: [`delete from audit_entries ${atSequence(5)}`], finds: ['removed', 5] },
  { name: 'several removed', sql: [`delete from audit_entries ${OF_TENANT} and sequence in (5, 6, 7)`], finds: ['removed', 5] },
  { name: 'the last entry removed', sql: [`delete from audit_entries ${atSequence(10)}`], finds: ['truncated', 10] },
  { name: 'all entries removed', sql: [`delete from audit_entries ${OF_TENANT}`], finds: ['truncated', 1] },
  {
    name: 'all entries removed with the head',
    sql: [`delete from audit_entries ${OF_TENANT}`, `delete from audit_heads ${OF_TENANT}`],
    finds: ['truncated', 1],
  },
  {
    name: 'an entry removed, and those after it moved up',
    sql: [
      `delete from audit_entries ${atSequence(5)}`,
      ...[6, 7, 8, 9, 10].map((sequence) => `update audit_entries set sequence = ${sequence - 1} ${atSequence(sequence)}`),
      `update audit_heads set sequence = 9 ${OF_TENANT}`,
    ],
    finds: ['altered', 5],
  },
  {
    name: 'neighbours swapped',
    sql: [
      `update audit_entries set sequence = 99 ${atSequence(5)}`,
      `update audit_entries set sequence = 5 ${atSequence(6)}`,
      `update audit_entries set sequence = 6 ${atSequence(99)}`,
    ],
    finds: ['reordered', 5],
  },
  {
    name: 'distant entries swapped',
    sql: [
      `update audit_entries set sequence = 99 ${atSequence(3)}`,
      `update audit_entries set sequence = 3 ${atSequence(8)}`,
      `update audit_entries set sequence = 8 ${atSequence(99)}`,
    ],
    finds: ['reordered', 3],
  },
  {
    name: 'an entry put in',
    sql: [
      ...[10, 9, 8, 7, 6].map((sequence) => `update audit_entries set sequence = ${sequence + 1} ${atSequence(sequence)}`),
      `insert into audit_entries (${COLUMNS})
       select tenant_id, 6, at, actor, action, kind, 'inserted', detail, hash from audit_entries ${atSequence(5)}`,
    ],
    finds: ['altered', 6],
  },
  {
    name: 'an entry put on the end',
    sql: [
      `insert into audit_entries (${COLUMNS})
       select tenant_id, 11, at, actor, action, kind, target, detail, hash from audit_entries ${atSequence(10)}`,
    ],
    finds: ['head_outdated', 11],
  },
  {
    name: 'the newest entries removed, and the head set to the remaining ones',
    sql: [
      `delete from audit_entries ${OF_TENANT} and sequence > 7`,
      `update audit_heads set sequence = 7,
         hash = (select hash from audit_entries ${atSequence(7)}) ${OF_TENANT}`,
    ],
    finds: ['head_altered', 8],
  },
  { name: 'the head removed', sql: [`delete from audit_heads ${OF_TENANT}`], finds: ['head_altered', 10] },
  {
    name: "another chain's entry",
    sql: [
      `delete from audit_entries ${atSequence(1)}`,
      `insert into audit_entries (${COLUMNS})
       select 'T', sequence, at, actor, action, kind, target, detail, hash from audit_entries
       where tenant_id = 'O' and sequence = 1`,
    ],
    finds: ['altered', 1],
  },
];

/** Changes that an attacker with access to the database can make to the audit log, and the faults that verification finds. */
const MASTER_SECRET = 'a master secret of decent length';
const RENEWED_SECRET = 'another master secret of decent length';
/** A database needs every secret that was ever used to seal in it. */
const renewedCipher = () => new MasterCipher({ masterSecrets: [MASTER_SECRET, RENEWED_SECRET] });

export function describeTampering(open: () => { store: Store; url: string; cipher: MasterCipher }): void {
  describe('a tampered audit log', () => {
    const by = { clientId: 'root', tenantId: null };
    let store: Store;
    let url: string;
    let macs: Macs;
    let tenantId: TenantId;
    let otherTenant: TenantId;
    beforeEach(async () => {
      const openStore = open();
      ({ store, url } = openStore);
      macs = openStore.cipher.macs(AUDIT_LOG);
      const tenant = aTenant();
      tenantId = tenant.id;
      await store.forService(({ tenants }) => tenants.add(tenant), { by });
      otherTenant = await addTenant(store);
      for (let i = 0; i < 9; i++) await write();
    });
    afterEach(() => store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' }));

    const write = (target = store) =>
      target.forTenant(tenantId, (repositories) => repositories.keyChains.put(aKeyChain(tenantId, 'keys')), { by: 'system' });
    const tamper = (statements: readonly string[]) =>
      rawSql(url, async (run) => {
        for (const text of statements) await run(text.replaceAll("'T'", `'${tenantId}'`).replaceAll("'O'", `'${otherTenant}'`));
      });
    const verify = (usedMacs: Macs = macs, anchor?: Anchor): Promise<ChainReport> =>
      new VerifyAuditLog({ store, macs: usedMacs }).verify(tenantId, anchor);
    const findFault = async (...parameters: Parameters<typeof verify>) => {
      const { fault } = await verify(...parameters);
      return fault && [fault.kind, fault.sequence];
    };

    it('is intact before the change', async () => {
      const { end, fault } = await verify();
      expect(fault).to.equal(undefined);
      expect(end.sequence).to.equal(10);
    });

    for (const { name, sql, finds } of TAMPERINGS) {
      it(`shows ${name}`, async () => {
        await tamper(sql);
        expect(await findFault()).to.deep.equal(finds);
      });

      it(`does not let the service hide ${name}, and does not stop the service`, async () => {
        await tamper(sql);
        const { session } = await openOffer(store, tenantId);
        const { id: listId } = await addList(store, tenantId);
        const revocation = { sessionId: session.id, mask: 1, barred: true, issuedCount: 0 };
        await stepsOf(store, tenantId).commit(credentialRevocation([{ listId, index: 1, status: 1 }], { ...revocation, by: 'system' }));
        await write();
        expect((await verify()).fault).to.not.equal(undefined);
      });
    }

    it('reveals the removal of the newest entries with a reset head when an anchor was stored outside the database', async () => {
      const anchorBefore = (await verify()).end;
      const select = (table: string) => rawSql(url, (run) => run(`select * from ${table} where tenant_id = '${tenantId}'`));
      const [head] = await select('audit_heads');
      await write();
      const anchorAfter = (await verify()).end;
      expect(await findFault(macs, anchorBefore)).to.equal(undefined);
      await tamper([
        `delete from audit_entries ${atSequence(11)}`,
        `update audit_heads set sequence = 10, hash = '${head?.['hash']}', seal = '${head?.['seal']}' ${OF_TENANT}`,
      ]);
      expect(await findFault(), 'the database alone does not show it').to.equal(undefined);
      expect(await findFault(macs, anchorAfter)).to.deep.equal(['truncated', 11]);
      await write();
      expect(await findFault(macs, anchorAfter), 'a different entry 11').to.deep.equal(['unexpected', 11]);
    });

    it('reveals a restarted chain by the chain of the service', async () => {
      await tamper([`delete from audit_entries ${OF_TENANT}`, `delete from audit_heads ${OF_TENANT}`]);
      await write();
      expect(await findFault()).to.deep.equal(['unexpected', 1]);
    });

    it('distinguishes another master secret from an altered entry, and accepts a former one', async () => {
      const [one, two] = ['another master secret of decent length', 'a master secret of decent length'];
      const cipher = (...masterSecrets: string[]) => new MasterCipher({ masterSecrets }).macs(AUDIT_LOG);
      expect(await findFault(cipher(one))).to.deep.equal(['unknown_key', 1]);
      expect(await findFault(cipher(one, two))).to.equal(undefined);
    });

    it('continues under a new master secret', async () => {
      const cipher = new MasterCipher({ masterSecrets: [RENEWED_SECRET, MASTER_SECRET] });
      const renewedStore = await OrmStore.open({ url, poolSize: 2 }, cipher);
      await write(renewedStore);
      await renewedStore.close();
      expect(await findFault(cipher.macs(AUDIT_LOG))).to.equal(undefined);
      expect(await findFault(), 'with the former secret only').to.deep.equal(['unknown_key', 11]);
    });

    it('is written by several processes concurrently, with many changes each', async () => {
      const second = await OrmStore.open({ url, poolSize: 4 }, renewedCipher());
      try {
        const offers = await Promise.all(Array.from({ length: 40 }, () => openOffer(store, tenantId)));
        const removedTenants = await Promise.all(
          offers.map(({ session }, index) =>
            stepsOf(index % 2 === 0 ? store : second, tenantId).commit(sessionRemoval(session.id, 'system')),
          ),
        );
        expect(removedTenants.filter(({ done }) => !done)).to.deep.equal([]);
      } finally {
        await second.close();
      }
      const { end, fault } = await verify();
      expect(fault).to.equal(undefined);
      expect(end.sequence).to.equal(50);
    });

    it('keeps up with two processes that change a tenant without a pause, and rejects no change', async () => {
      const MANY = 500;
      const second = await OrmStore.open({ url, poolSize: 4 }, renewedCipher());
      const list = await addList(store, tenantId, { capacity: MANY });
      const before = (await verify()).end.sequence;
      let next = 0;
      const revoke = async (revoker: Store) => {
        while (next < MANY) {
          const index = next++;
          const change = { action: 'revoked', kind: 'session', target: `s${index}`, changes: [] } as const;
          const statuses = [{ listId: list.id, index, status: 1 }] as const;
          const { done } = await revoker.commit(tenantId, { statuses, audit: { by: 'system', change } }, NOW);
          expect(done).to.equal(true);
        }
      };
      try {
        await Promise.all(Array.from({ length: 128 }, (_, caller) => revoke(caller % 2 ? store : second)));
      } finally {
        await second.close();
      }
      const { end, fault } = await verify();
      expect([fault, end.sequence - before]).to.deep.equal([undefined, MANY]);
    });

    it('rolls a change back when its entry cannot be written', async () => {
      const cipher = renewedCipher();
      cipher.macs = () => ({
        ...macs,
        make() {
          throw new Error('no entry');
        },
      });
      const broken = await OrmStore.open({ url, poolSize: 2 }, cipher);
      try {
        const write = broken.forTenant(tenantId, (repositories) => repositories.keyChains.put(aKeyChain(tenantId, 'lost')), {
          by: 'system',
        });
        expect(String(await failureOf(write))).to.include('no entry');
        const { session } = await openOffer(store, tenantId);
        const removal = stepsOf(broken, tenantId).commit(sessionRemoval(session.id, 'system'));
        expect(String(await failureOf(removal))).to.include('no entry');
        expect((await stepsOf(store, tenantId).session(session.id))?.session).to.not.equal(undefined);
      } finally {
        await broken.close();
      }
      const chains = await store.forTenant(tenantId, (repositories) => repositories.keyChains.list());
      expect(chains.map(({ id }) => id)).to.deep.equal(['keys']);
      expect(await findFault()).to.equal(undefined);
    });
  });
}

const DAY_MS = 86_400_000;

/** Retention of the audit log: the remaining entries can be verified after the oldest ones are removed. */
export function describePruning(open: () => { store: Store; url: string; macs: Macs }): void {
  describe('an audit log with a retention period', () => {
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
      store.forTenant(tenantId, (repositories) => repositories.keyChains.put(aKeyChain(tenantId, 'keys')), { by: 'system' });
    /** Entries up to now become older by this number of days. Their MACs cover the time, so the test advances `now` instead. */
    const prune = async (daysLater: number, auditKeepDays: number | null = 30, clockDaysLater = daysLater) => {
      const log = { error: (message: string, fields?: object) => errors.push({ message, fields }) } as unknown as Log;
      const settings = { auditKeepDays: auditKeepDays ?? undefined } as unknown as ServiceSettings;
      const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);
      const clock = { now: () => inDays(clockDaysLater) };
      const pruning = new PruneAuditLog({ store, settings, log, clock, auditMacs: { macs } });
      let cursor: TenantId | undefined;
      do {
        cursor = (await pruning.execute(inDays(daysLater), 2, cursor)).last;
      } while (cursor !== undefined);
    };
    /** Prunes the log of this tenant only, 32 days later. */
    const pruneWith = async (prunedStore: Store) => {
      const now = new Date(Date.now() + 32 * DAY_MS);
      let cursor: TenantId | undefined;
      for (;;) {
        const [next] = await store.maintenance.oldAuditLogs(now, 1, cursor);
        if (next === undefined || next === tenantId) break;
        cursor = next;
      }
      const pruning = new PruneAuditLog({
        ...{ store: prunedStore, settings: { auditKeepDays: 30 } as ServiceSettings, auditMacs: { macs } },
        clock: { now: () => now },
        log: { error: () => {} } as unknown as Log,
      });
      return pruning.execute(now, 1, cursor);
    };
    const verify = (anchor?: Anchor) => new VerifyAuditLog({ store, macs }).verify(tenantId, anchor);
    const sequences = async () =>
      (await store.forTenant(tenantId, ({ audit }) => audit.list({ ascending: true, limit: 100 }))).map(({ sequence }) => sequence);
    const tamper = (text: string) => rawSql(url, (run) => run(text.replaceAll("'T'", `'${tenantId}'`)));

    it('is never pruned without a configured retention', async () => {
      await prune(40_000, null);
      expect(await sequences()).to.have.length(10);
    });

    it('loses its oldest entries with a record, and the rest is intact', async () => {
      const before = (await verify()).end;
      await prune(29);
      await prune(30.5);
      expect(await sequences(), 'pruning waits for one more day to limit the number of runs').to.have.length(10);
      await prune(32);
      const [pruned, ...laterEntries] = await store.forTenant(tenantId, ({ audit }) => audit.list({ limit: 9 }));
      expect(laterEntries).to.deep.equal([]);
      expect(pruned).to.include({ sequence: 11, actor: 'system', action: 'pruned', kind: 'audit-log' });
      expect(JSON.parse(pruned?.detail ?? '').changes).to.deep.equal([{ member: 'entries', before: 10 }]);
      const { end, fault, warning } = await verify();
      expect([end.sequence, fault, warning]).to.deep.equal([11, undefined, undefined]);
      expect((await verify(before)).fault, 'the anchor is the last removed entry').to.equal(undefined);
      await write();
      await prune(70);
      expect(await sequences(), 'a second run').to.deep.equal([13]);
      expect((await verify()).fault).to.equal(undefined);
    });

    it('is not pruned by a database clock or a process clock that is years ahead', async () => {
      await prune(4_000, 30, 0);
      await prune(0, 30, 4_000);
      expect(await sequences()).to.have.length(10);
    });

    it('reports a pruned anchor, and still verifies another chain', async () => {
      const anchor = (await verify()).end;
      await write();
      await prune(32);
      const report = await verify(anchor);
      expect(report.fault).to.equal(undefined);
      expect(report.warning).to.match(/^entry 10 was pruned.* from entry 12 on/);
      const last = { sequence: 11, hash: 'another' };
      expect((await verify(last)).fault?.kind, 'the log of the service shows it').to.equal('unexpected');
    });

    it('detects removed entries, also directly behind the pruned ones', async () => {
      await prune(32);
      for (let i = 0; i < 3; i++) await write();
      await tamper("delete from audit_entries where tenant_id = 'T' and sequence <= 12");
      const { fault } = await verify();
      expect([fault?.kind, fault?.sequence]).to.deep.equal(['removed', 11]);
    });

    it('keeps altered entries, so that pruning hides no fault', async () => {
      await tamper("update audit_entries set actor = 'changed' where tenant_id = 'T' and sequence = 4");
      await prune(32);
      expect(await sequences()).to.have.length(10);
      expect(errors.map(({ fields }) => fields)).to.deep.include({
        ...{ tenantId, kind: 'altered' },
        message: 'entry 4 was altered or inserted, or an entry before it was removed',
      });
    });

    it('continues after a run that was interrupted after its progress was stored', async () => {
      const broken = {
        forService: store.forService.bind(store),
        forTenant: store.forTenant.bind(store),
        maintenance: { ...store.maintenance, removeAuditEntries: () => Promise.reject(new Error('the process is dead')) },
      } as unknown as Store;
      const failure = await pruneWith(broken).catch((error: unknown) => error);
      expect(String(failure)).to.include('the process is dead');
      expect(await sequences()).to.have.length(11);
      expect((await verify()).fault, 'the remaining entries are intact').to.equal(undefined);
      await prune(32);
      expect((await verify()).fault).to.equal(undefined);
      expect(await sequences()).to.deep.equal([12]);
    });

    it('is not pruned when the tenant was removed and created again during the read', async () => {
      const newTenant = { ...aTenant(), id: tenantId };
      const racingStore = {
        forTenant: store.forTenant.bind(store),
        maintenance: store.maintenance,
        forService: async (work: never, writing: never) => {
          if (writing !== undefined) {
            await store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' });
            await store.maintenance.removeRemainingRows(new Date(Date.now() + DAY_MS), 10_000);
            await store.forService(({ tenants }) => tenants.add(newTenant), { by });
          }
          return store.forService(work, writing);
        },
      } as unknown as Store;
      const failure = await pruneWith(racingStore).catch((error: unknown) => error);
      expect(String(failure)).to.include('the log has changed');
      const { end, fault } = await verify();
      expect([end.sequence, fault]).to.deep.equal([1, undefined]);
    });

    it('begins a new chain for a tenant that was created again', async () => {
      await prune(32);
      await store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' });
      await store.maintenance.removeRemainingRows(new Date(Date.now() + DAY_MS), 10_000);
      await store.forService(({ tenants }) => tenants.add({ ...aTenant(), id: tenantId }), { by });
      const { end, fault } = await verify();
      expect([end.sequence, fault]).to.deep.equal([1, undefined]);
    });
  });
}
