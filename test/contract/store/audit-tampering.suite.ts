import { expect } from 'chai';
import { MasterCipher } from '../../../adapters/crypto/cipher.ts';
import { AUDIT_LOG } from '../../../adapters/persistence/audit-keys.ts';
import { OrmStore } from '../../../adapters/persistence/orm-store.ts';
import type { Anchor, ChainReport } from '../../../application/audit/chain-reports.ts';
import { VerifyAuditLog } from '../../../application/audit/verify-audit-log.ts';
import type { Store } from '../../../application/ports/store.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { rawSql } from '../../support/databases.ts';
import { addList, addTenant, aKeyChain, aTenant, failureOf, NOW, openOffer } from './builders.ts';
import { stepsOf } from './steps.ts';

type Tampering = {
  readonly name: string;
  /** Statements of somebody who has the database and no key; `T` stands for the tenant's chain. */
  readonly sql: readonly string[];
  /** What is found, at which entry. */
  readonly finds: readonly [string, number];
};

const OF = `where tenant_id = 'T'`;
const at = (sequence: number) => `${OF} and sequence = ${sequence}`;
const COLUMNS = 'tenant_id, sequence, at, actor, action, kind, target, detail, hash';

/** The chain has ten entries. */
const TAMPERINGS: readonly Tampering[] = [
  ...['actor', 'action', 'kind', 'target', 'detail', 'hash'].map(
    (column): Tampering => ({
      name: `another ${column}`,
      sql: [`update audit_entries set ${column} = ${column} || 'x' ${at(5)}`],
      finds: ['altered', 5],
    }),
  ),
  { name: 'another time', sql: [`update audit_entries set at = at + 1 ${at(5)}`], finds: ['altered', 5] },
  {
    name: 'the first entry altered',
    sql: [`update audit_entries set actor = 'x' ${at(1)}`],
    finds: ['altered', 1],
  },
  {
    name: 'the last entry altered',
    sql: [`update audit_entries set actor = 'x' ${at(10)}`],
    finds: ['altered', 10],
  },
  { name: 'the first entry removed', sql: [`delete from audit_entries ${at(1)}`], finds: ['removed', 1] },
  { name: 'an entry removed', sql: [`delete from audit_entries ${at(5)}`], finds: ['removed', 5] },
  {
    name: 'several removed',
    sql: [`delete from audit_entries ${OF} and sequence in (5, 6, 7)`],
    finds: ['removed', 5],
  },
  { name: 'the last entry removed', sql: [`delete from audit_entries ${at(10)}`], finds: ['truncated', 10] },
  { name: 'all entries removed', sql: [`delete from audit_entries ${OF}`], finds: ['truncated', 1] },
  {
    name: 'all entries removed with the head',
    sql: [`delete from audit_entries ${OF}`, `delete from audit_heads ${OF}`],
    finds: ['truncated', 1],
  },
  {
    name: 'an entry removed, and those after it moved up',
    sql: [
      `delete from audit_entries ${at(5)}`,
      ...[6, 7, 8, 9, 10].map(
        (sequence) => `update audit_entries set sequence = ${sequence - 1} ${at(sequence)}`,
      ),
      `update audit_heads set sequence = 9 ${OF}`,
    ],
    finds: ['altered', 5],
  },
  {
    name: 'neighbours swapped',
    sql: [
      `update audit_entries set sequence = 99 ${at(5)}`,
      `update audit_entries set sequence = 5 ${at(6)}`,
      `update audit_entries set sequence = 6 ${at(99)}`,
    ],
    finds: ['reordered', 5],
  },
  {
    name: 'distant entries swapped',
    sql: [
      `update audit_entries set sequence = 99 ${at(3)}`,
      `update audit_entries set sequence = 3 ${at(8)}`,
      `update audit_entries set sequence = 8 ${at(99)}`,
    ],
    finds: ['reordered', 3],
  },
  {
    name: 'an entry put in',
    sql: [
      ...[10, 9, 8, 7, 6].map(
        (sequence) => `update audit_entries set sequence = ${sequence + 1} ${at(sequence)}`,
      ),
      `insert into audit_entries (${COLUMNS})
       select tenant_id, 6, at, actor, action, kind, 'planted', detail, hash from audit_entries ${at(5)}`,
    ],
    finds: ['altered', 6],
  },
  {
    name: 'an entry put on the end',
    sql: [
      `insert into audit_entries (${COLUMNS})
       select tenant_id, 11, at, actor, action, kind, target, detail, hash from audit_entries ${at(10)}`,
    ],
    finds: ['head_outdated', 11],
  },
  {
    name: 'the end removed, and the head made of what is left',
    sql: [
      `delete from audit_entries ${OF} and sequence > 7`,
      `update audit_heads set sequence = 7,
         hash = (select hash from audit_entries ${at(7)}) ${OF}`,
    ],
    finds: ['head_altered', 8],
  },
  { name: 'the head removed', sql: [`delete from audit_heads ${OF}`], finds: ['head_altered', 10] },
  {
    name: "another chain's entry",
    sql: [
      `delete from audit_entries ${at(1)}`,
      `insert into audit_entries (${COLUMNS})
       select 'T', sequence, at, actor, action, kind, target, detail, hash from audit_entries
       where tenant_id = 'O' and sequence = 1`,
    ],
    finds: ['altered', 1],
  },
];

/** What somebody with access to the database can do to the audit log, and what is found of it. */
const MASTER_SECRET = 'a master secret of decent length';
const RENEWED = 'another master secret of decent length';
/** A database needs every secret that ever sealed in it. */
const afterRenewal = () => new MasterCipher({ masterSecrets: [MASTER_SECRET, RENEWED] });

export function describeTampering(open: () => { store: Store; url: string; cipher: MasterCipher }): void {
  describe('an audit log that somebody tampers with', () => {
    const by = { clientId: 'root', tenantId: null };
    let store: Store;
    let url: string;
    let macs: Macs;
    let tenantId: TenantId;
    let other: TenantId;
    beforeEach(async () => {
      const opened = open();
      ({ store, url } = opened);
      macs = opened.cipher.macs(AUDIT_LOG);
      const tenant = aTenant();
      tenantId = tenant.id;
      await store.forService(({ tenants }) => tenants.add(tenant), { by });
      other = await addTenant(store);
      for (let i = 0; i < 9; i++) await write();
    });
    afterEach(() => store.forService(({ tenants }) => tenants.remove(tenantId), { by: 'system' }));

    const write = (to = store) =>
      to.forTenant(tenantId, (own) => own.keyChains.put(aKeyChain(tenantId, 'keys')), { by: 'system' });
    const tamper = (statements: readonly string[]) =>
      rawSql(url, async (run) => {
        for (const text of statements)
          await run(text.replaceAll("'T'", `'${tenantId}'`).replaceAll("'O'", `'${other}'`));
      });
    const verify = (of: Macs = macs, anchor?: Anchor): Promise<ChainReport> =>
      new VerifyAuditLog({ store, macs: of }).verify(tenantId, anchor);
    const found = async (...parameters: Parameters<typeof verify>) => {
      const { fault } = await verify(...parameters);
      return fault && [fault.kind, fault.sequence];
    };

    it('is whole before that', async () => {
      const { end, fault } = await verify();
      expect(fault).to.equal(undefined);
      expect(end.sequence).to.equal(10);
    });

    for (const { name, sql, finds } of TAMPERINGS) {
      it(`shows ${name}`, async () => {
        await tamper(sql);
        expect(await found()).to.deep.equal(finds);
      });

      it(`does not let the service cover up ${name}, nor keeps it from working`, async () => {
        await tamper(sql);
        const { session } = await openOffer(store, tenantId);
        const { id: listId } = await addList(store, tenantId);
        const revocation = { sessionId: session.id, mask: 1, barred: true, issuedCount: 0 };
        await stepsOf(store, tenantId).changeStatuses([{ listId, index: 1, status: 1 }], NOW, {
          ...revocation,
          by: 'system',
        });
        await write();
        expect((await verify()).fault).to.not.equal(undefined);
      });
    }

    it('shows the newest entries removed with the head put back to who kept the head elsewhere', async () => {
      const kept = (await verify()).end;
      const select = (table: string) =>
        rawSql(url, (run) => run(`select * from ${table} where tenant_id = '${tenantId}'`));
      const [head] = await select('audit_heads');
      await write();
      const later = (await verify()).end;
      expect(await found(macs, kept)).to.equal(undefined);
      await tamper([
        `delete from audit_entries ${at(11)}`,
        `update audit_heads set sequence = 10, hash = '${head?.['hash']}', seal = '${head?.['seal']}' ${OF}`,
      ]);
      expect(await found(), 'nobody can tell by the database alone').to.equal(undefined);
      expect(await found(macs, later)).to.deep.equal(['truncated', 11]);
      await write();
      expect(await found(macs, later), 'another entry 11').to.deep.equal(['unexpected', 11]);
    });

    it('shows a chain begun anew to the chain of the service', async () => {
      await tamper([`delete from audit_entries ${OF}`, `delete from audit_heads ${OF}`]);
      await write();
      expect(await found()).to.deep.equal(['unexpected', 1]);
    });

    it('tells another master secret from an altered entry, and takes a former one', async () => {
      const [one, two] = ['another master secret of decent length', 'a master secret of decent length'];
      const cipher = (...masterSecrets: string[]) => new MasterCipher({ masterSecrets }).macs(AUDIT_LOG);
      expect(await found(cipher(one))).to.deep.equal(['unknown_key', 1]);
      expect(await found(cipher(one, two))).to.equal(undefined);
    });

    it('goes on under a new master secret', async () => {
      const cipher = new MasterCipher({ masterSecrets: [RENEWED, MASTER_SECRET] });
      const renewed = await OrmStore.open({ url, poolSize: 2 }, cipher);
      await write(renewed);
      await renewed.close();
      expect(await found(cipher.macs(AUDIT_LOG))).to.equal(undefined);
      expect(await found(), 'the former secret alone').to.deep.equal(['unknown_key', 11]);
    });

    it('is written by several processes at once, which change many things each', async () => {
      const second = await OrmStore.open({ url, poolSize: 4 }, afterRenewal());
      try {
        const offers = await Promise.all(Array.from({ length: 40 }, () => openOffer(store, tenantId)));
        const removed = await Promise.all(
          offers.map(({ session }, index) =>
            stepsOf(index % 2 === 0 ? store : second, tenantId).removeSession(session.id, 'system'),
          ),
        );
        expect(removed).to.not.include(false);
      } finally {
        await second.close();
      }
      const { end, fault } = await verify();
      expect(fault).to.equal(undefined);
      expect(end.sequence).to.equal(50);
    });

    it('keeps up with two processes that change a tenant without a pause: nobody is refused', async () => {
      const MANY = 1_500;
      const second = await OrmStore.open({ url, poolSize: 4 }, afterRenewal());
      const list = await addList(store, tenantId, { capacity: MANY });
      const before = (await verify()).end.sequence;
      let next = 0;
      const revoke = async (by: Store) => {
        while (next < MANY) {
          const index = next++;
          const change = { action: 'revoked', kind: 'session', target: `s${index}`, changes: [] } as const;
          const statuses = [{ listId: list.id, index, status: 1 }] as const;
          const { done } = await by.commit(tenantId, { statuses, audit: { by: 'system', change } }, NOW);
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

    it('takes a change back when its entry cannot be written', async () => {
      const cipher = afterRenewal();
      cipher.macs = () => ({
        ...macs,
        make() {
          throw new Error('no entry');
        },
      });
      const broken = await OrmStore.open({ url, poolSize: 2 }, cipher);
      try {
        const put = broken.forTenant(tenantId, (own) => own.keyChains.put(aKeyChain(tenantId, 'lost')), {
          by: 'system',
        });
        expect(String(await failureOf(put))).to.include('no entry');
        const { session } = await openOffer(store, tenantId);
        const removal = stepsOf(broken, tenantId).removeSession(session.id, 'system');
        expect(String(await failureOf(removal))).to.include('no entry');
        expect(await stepsOf(store, tenantId).findSession(session.id)).to.not.equal(undefined);
      } finally {
        await broken.close();
      }
      const chains = await store.forTenant(tenantId, (own) => own.keyChains.list());
      expect(chains.map(({ id }) => id)).to.deep.equal(['keys']);
      expect(await found()).to.equal(undefined);
    });
  });
}
