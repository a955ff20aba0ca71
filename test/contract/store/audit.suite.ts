import { expect } from 'chai';
import { VerifyAuditLog } from '../../../application/audit/verify-audit-log.ts';
import type { TenantReader, TenantRepositories } from '../../../application/ports/repositories.ts';
import type { Store } from '../../../application/ports/store.ts';
import { type Actor, type AuditEntry, detailOf } from '../../../domain/audit/audit-entry.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import {
  aBatch,
  aClient,
  aConfiguration,
  aDeferred,
  addList,
  addTenant,
  aKeyChain,
  aRegistrarConfiguration,
  aTenant,
  failureOf,
  NOW,
  openOffer,
  seconds,
} from './builders.ts';
import { credentialRevocation, deferredCompletion, deferredFailure, issuanceDeferral, sessionRemoval, stepsOf } from './steps.ts';

const ALL = { limit: 1000 } as const;
const brief = ({ actor, action, kind, target }: AuditEntry) => `${actor} ${action} ${kind} ${target}`;
const changedProperties = (entry: AuditEntry | undefined) =>
  entry === undefined ? [] : detailOf(entry).changes.map(({ member }) => member);

export function describeAudit(open: () => Store, macs: Macs): void {
  describe('the audit log', () => {
    let store: Store;
    let tenantId: TenantId;
    let admin: Actor & object;
    beforeEach(async () => {
      store = open();
      tenantId = await addTenant(store);
      admin = { clientId: 'admin', tenantId, requestId: 'request-1' };
    });
    const readLog = (id: TenantId) => store.forTenant(id, ({ audit }) => audit.list({ ...ALL, ascending: true }));
    /** The log without the creation of the tenant. */
    const log = async () => (await readLog(tenantId)).slice(1);
    const write = <T>(work: (repositories: TenantRepositories) => Promise<T>, by: Actor = admin) => store.forTenant(tenantId, work, { by });
    const faults = async () => {
      const strings: string[] = [];
      for await (const { scope, fault } of new VerifyAuditLog({ store, macs }).execute()) {
        if (fault !== undefined) strings.push(`${scope}: ${fault.message}`);
      }
      return strings;
    };

    it('has an entry for every write, with actor, time and change', async () => {
      const before = Date.now();
      const key = 'key of the webhook';
      const auth = { type: 'apiKey', config: { headerName: 'X-Key', value: key } } as const;
      await write(async (repositories) => {
        await repositories.keyChains.add(aKeyChain(tenantId, 'keys'));
        await repositories.keyChains.put({ ...aKeyChain(tenantId, 'keys'), description: 'secret plans' });
        const { active } = aKeyChain(tenantId, 'keys');
        const handle = { ...active.key.handle, keyId: 'two' };
        const rotatedChain = { ...aKeyChain(tenantId, 'keys'), active: { ...active, key: { ...active.key, handle } } };
        await repositories.keyChains.put({ ...rotatedChain, description: 'secret plans' });
        await repositories.credentialConfigurations.put(aConfiguration('pid'));
        const claimsWebhook = { url: 'https://backend.example/hook?token=abc', auth };
        await repositories.credentialConfigurations.put(aConfiguration('pid', { claimsWebhook, keyBinding: false }));
        await repositories.credentialConfigurations.remove('pid');
        await repositories.registrarConfiguration.put(aRegistrarConfiguration());
        await repositories.tenant.save({ ...(await repositories.tenant.get()), status: 'suspended', description: 'internal note' });
        repositories.audit.note({ action: 'cleared', kind: 'cache', target: 'trust-lists', changes: [] });
      });
      const entries = await log();
      expect(entries.map(brief)).to.deep.equal([
        'admin created key-chain keys',
        'admin changed key-chain keys',
        'admin rotated key-chain keys',
        'admin created credential-configuration pid',
        'admin changed credential-configuration pid',
        'admin removed credential-configuration pid',
        'admin created registrar-configuration default',
        `admin changed tenant ${tenantId}`,
        'admin cleared cache trust-lists',
      ]);
      expect(entries.map(({ sequence }) => sequence)).to.deep.equal([2, 3, 4, 5, 6, 7, 8, 9, 10]);
      for (const { at } of entries) expect(at.getTime()).to.be.within(before, Date.now());
      expect(changedProperties(entries[1])).to.deep.equal(['description']);
      expect(changedProperties(entries[2])).to.deep.equal(['active']);
      expect(detailOf(entries[4] as AuditEntry)).to.deep.equal({
        changes: [{ member: 'claimsWebhook' }, { member: 'keyBinding', before: true, after: false }],
        requestId: 'request-1',
      });
      expect(changedProperties(entries[6])).to.include.members(['password', 'registrarUrl']);
      expect(detailOf(entries[7] as AuditEntry).changes).to.deep.equal([
        { member: 'description' },
        { member: 'status', before: 'active', after: 'suspended' },
      ]);
      for (const secret of ['plans', key, 'token=abc', 'Mustermann', 'password at', 'sealed', 'internal note']) {
        expect(JSON.stringify(entries)).to.not.include(secret);
      }
      expect(await faults()).to.deep.equal([]);
    });

    it('records the changes of a client and of its secret', async () => {
      const pickUp = { sealedSecret: 'sealed secret', role: 'clients:manage', expiresAt: new Date(Date.now() + 60_000) } as const;
      const client = aClient(tenantId, { clientId: `${tenantId}-shop`, pickUp });
      await write(async ({ clients }) => {
        await clients.add(client);
        let savedClient = await clients.save({ ...client, pickUp: null });
        savedClient = await clients.save({ ...savedClient, roles: ['issuance:manage'], description: 'changed' });
        savedClient = await clients.save({ ...savedClient, secretHash: 'another hash', pickUp });
        savedClient = await clients.save({ ...savedClient, pickUp: { ...pickUp, expiresAt: NOW } });
        await clients.remove(client.clientId);
      });
      const expiredClient = aClient(tenantId, { pickUp: { ...pickUp, expiresAt: new Date(0) } });
      await write(async ({ clients }) => {
        await clients.add(expiredClient);
        await clients.save({ ...expiredClient, pickUp: null });
      });
      const entries = await log();
      expect(entries.map(({ action }) => action)).to.deep.equal([
        ...['created', 'fetched', 'changed', 'rotated', 'changed', 'removed'],
        ...['created', 'expired'],
      ]);
      expect(detailOf(entries[2] as AuditEntry).changes).to.deep.equal([
        { member: 'description' },
        { member: 'roles', before: ['issuance:offer'], after: ['issuance:manage'] },
      ]);
      expect(changedProperties(entries[3])).to.deep.equal(['secret']);
      expect(JSON.stringify(entries)).to.not.match(/sealed secret|hash of|another hash/);
    });

    it('records revocations, decisions on deferred credentials and removed sessions', async () => {
      const { id: listId } = await addList(store, tenantId);
      const { session } = await openOffer(store, tenantId);
      const steps = stepsOf(store, tenantId);
      const revoke = (status: number, credentialConfigurationId?: string, issuedCount = 0) =>
        steps.commit(
          credentialRevocation(
            [3, 4].map((index) => ({ listId, index, status })),
            {
              by: { clientId: 'desk', tenantId },
              sessionId: session.id,
              credentialConfigurationId,
              mask: 3,
              barred: status !== 0,
              issuedCount,
            },
          ),
        );
      expect(await revoke(2, 'diploma')).to.include({ done: true });
      expect(await revoke(0, undefined, 7), 'a credential was issued in the meantime').to.include({ done: false });
      expect(await revoke(0)).to.include({ done: true });
      const [first, second, third] = [aDeferred(session), aDeferred(session), aDeferred(session)];
      for (const transaction of [first, second, third]) await steps.commit(issuanceDeferral(transaction, 1));
      const desk = { clientId: 'desk', tenantId };
      const complete = () => steps.commit(deferredCompletion(first.id, ['one'], aBatch(session), 1, desk), seconds(1));
      expect(await complete()).to.include({ done: true });
      expect(await complete(), 'a second completion').to.include({ done: false });
      expect(await steps.commit(deferredFailure(second.id, 'no such person', desk), seconds(1))).to.include({ done: true });
      expect(await steps.commit(deferredFailure(third.id, 'its session failed', null), seconds(1))).to.include({ done: true });
      expect(await revoke(1, undefined, 1)).to.include({ done: true });
      expect(await revoke(0, undefined, 1), 'a revocation is final').to.include({ done: false });
      expect(await steps.commit(sessionRemoval(session.id, desk))).to.include({ done: true });
      expect(await steps.commit(sessionRemoval(session.id, desk))).to.include({ done: false });
      const entries = (await log()).slice(1);
      expect(entries.map(brief)).to.deep.equal([
        `desk suspended session ${session.id}`,
        `desk restored session ${session.id}`,
        `desk completed deferred-transaction ${first.id}`,
        `desk failed deferred-transaction ${second.id}`,
        `desk revoked session ${session.id}`,
        `desk removed session ${session.id}`,
      ]);
      expect(detailOf(entries[0] as AuditEntry).changes).to.deep.equal([
        { member: 'status', after: 2 },
        { member: 'credentials', after: 2 },
        { member: 'credentialConfigurationId', after: 'diploma' },
      ]);
      expect(JSON.stringify(entries)).to.not.include('no such person');
      expect(await faults()).to.deep.equal([]);
    });

    it('has no entry for a rolled back change, and rejects a write without an actor', async () => {
      const broken = write(async (brokenWrite) => {
        await brokenWrite.credentialConfigurations.put(aConfiguration('pid'));
        throw new Error('broken');
      });
      expect(String(await failureOf(broken))).to.include('broken');
      const reader = (repositories: TenantReader) =>
        (repositories as TenantRepositories).credentialConfigurations.put(aConfiguration('pid'));
      expect(String(await failureOf(store.forTenant(tenantId, reader)))).to.include('only reads');
      expect(await log()).to.deep.equal([]);
      expect(await store.forTenant(tenantId, (repositories) => repositories.credentialConfigurations.list())).to.deep.equal([]);
    });

    it('of the service keeps the entries of an account without tenant, also after the tenant is removed', async () => {
      const root = { clientId: `root of ${tenantId}`, tenantId: null };
      const all = async () => {
        const entries = await store.forService(({ audit }) => audit.list({ ...ALL, actor: root.clientId }));
        return entries.toReversed();
      };
      const tenant = aTenant({ name: 'Kept' });
      const initialEntities = {
        keyChains: [aKeyChain(tenant.id, 'first')],
        clients: [aClient(tenant.id, { clientId: `${tenant.id}-admin` })],
      };
      await store.forService(({ tenants }) => tenants.add(tenant, initialEntities), { by: root });
      await store.forTenant(
        tenant.id,
        async (repositories) => repositories.tenant.save({ ...(await repositories.tenant.get()), name: 'New' }),
        { by: root },
      );
      await store.forTenant(
        tenant.id,
        async (repositories) => repositories.tenant.save({ ...(await repositories.tenant.get()), name: 'Own' }),
        { by: { clientId: 'admin', tenantId: tenant.id } },
      );
      const tenantLog = await readLog(tenant.id);
      expect(tenantLog.map(({ action, kind }) => `${action} ${kind}`)).to.deep.equal([
        ...['created tenant', 'created key-chain', 'created client'],
        ...['changed tenant', 'changed tenant'],
      ]);
      expect(await faults()).to.deep.equal([]);
      await store.forService(({ tenants }) => tenants.remove(tenant.id), { by: root });
      while ((await store.maintenance.removeRemainingRows(new Date(), 500)) > 0);
      expect(await readLog(tenant.id)).to.deep.equal([]);
      const entriesBefore = await all();
      expect(entriesBefore.map(brief).slice(-2)).to.deep.equal([
        `${root.clientId} changed tenant ${tenant.id}`,
        `${root.clientId} removed tenant ${tenant.id}`,
      ]);
      const references = entriesBefore.map((entry) => detailOf(entry).of);
      expect(references.map((reference) => reference?.hash)).to.deep.equal(
        [...tenantLog.slice(0, 4), tenantLog[4]].map((entry) => entry?.hash),
      );
      expect(references.every((reference) => reference?.tenantId === tenant.id)).to.equal(true);
      await store.forService(({ tenants }) => tenants.add({ ...tenant, name: 'Again' }), { by: root });
      expect((await readLog(tenant.id)).map(({ sequence }) => sequence)).to.deep.equal([1]);
      expect(await faults()).to.deep.equal([]);
    });

    it('distinguishes clients with the name of the service from the service', async () => {
      await write(({ keyChains }) => keyChains.add(aKeyChain(tenantId, 'a')), { clientId: 'system', tenantId });
      await write(({ keyChains }) => keyChains.add(aKeyChain(tenantId, 'b')), { clientId: 'client system', tenantId });
      await write(({ keyChains }) => keyChains.add(aKeyChain(tenantId, 'c')), 'system');
      expect((await log()).map(({ actor }) => actor)).to.deep.equal(['client system', 'client client system', 'system']);
    });

    it('is read in pages and with filters', async () => {
      for (let i = 0; i < 5; i++) await write(({ keyChains }) => keyChains.put(aKeyChain(tenantId, `keys-${i % 2}`)));
      await write(({ credentialConfigurations }) => credentialConfigurations.put(aConfiguration('keys-0')), 'system');
      const find = async (query: object) => {
        const entries = await store.forTenant(tenantId, ({ audit }) => audit.list({ ...ALL, ...query }));
        return entries.map(({ sequence }) => sequence);
      };
      expect(await find({})).to.deep.equal([7, 6, 5, 4, 3, 2, 1]);
      expect(await find({ limit: 2 })).to.deep.equal([7, 6]);
      expect(await find({ limit: 2, after: 6 })).to.deep.equal([5, 4]);
      expect(await find({ limit: 2, after: 6, ascending: true })).to.deep.equal([7]);
      expect(await find({ actor: 'admin' })).to.deep.equal([6, 5, 4, 3, 2]);
      expect(await find({ target: 'keys-0' })).to.deep.equal([7, 6, 4, 2]);
      expect(await find({ target: 'keys-0', kind: 'key-chain', action: 'changed' })).to.deep.equal([6, 4]);
      const [time] = (await log()).map((entry) => entry.at);
      const afterwards = new Date((time?.getTime() ?? 0) + 60_000);
      expect(await find({ since: afterwards })).to.deep.equal([]);
      expect(await find({ until: afterwards })).to.have.length(7);
      expect(await find({ until: time })).to.not.include(7);
    });

    it('has a gapless chain after 40 concurrent writers of every kind', async () => {
      const { id: listId } = await addList(store, tenantId);
      const offers = await Promise.all(Array.from({ length: 20 }, () => openOffer(store, tenantId)));
      const before = (await readLog(tenantId)).length;
      const root = { clientId: 'root', tenantId: null };
      await Promise.all(
        offers.flatMap(({ session }, index) => [
          stepsOf(store, tenantId).commit(
            credentialRevocation([{ listId, index, status: 1 }], {
              by: { clientId: `desk-${index}`, tenantId },
              sessionId: session.id,
              mask: 1,
              barred: true,
              issuedCount: 0,
            }),
          ),
          index % 4 === 0
            ? stepsOf(store, tenantId).commit(sessionRemoval(session.id, { clientId: 'desk', tenantId }))
            : store.forTenant(tenantId, (repositories) => repositories.keyChains.put(aKeyChain(tenantId, `keys-${index}`)), {
                by: index % 4 === 1 ? root : admin,
                exclusive: index % 2 === 1,
              }),
        ]),
      );
      const entries = await readLog(tenantId);
      expect(entries.map(({ sequence }) => sequence)).to.deep.equal(Array.from({ length: before + 40 }, (_, index) => index + 1));
      expect(await faults()).to.deep.equal([]);
    });
  });
}
