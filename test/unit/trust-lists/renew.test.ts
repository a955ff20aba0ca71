import { expect } from 'chai';
import sinon from 'sinon';
import type { TenantCaller } from '../../../application/caller.ts';
import { CreateKeyChain } from '../../../application/keys/key-chains.ts';
import { Log, type LogFields } from '../../../application/ports/log.ts';
import { RenewTrustLists } from '../../../application/trust-lists/renew-trust-lists.ts';
import { TrustListPublisher } from '../../../application/trust-lists/trust-list-publisher.ts';
import { CreateTrustList, GetTrustList, UpdateTrustList } from '../../../application/trust-lists/trust-lists.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { ACME, aWorld, codeOf, type World } from '../administrators.ts';

const DAYS = 24 * 60 * 60 * 1000;
const ENTITIES = [
  { type: 'internal' as const, issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } },
];

class RecordingLog extends Log {
  readonly warnings: string[] = [];
  readonly errors: { message: string; fields: LogFields; cause: unknown }[] = [];
  override info(): void {}
  override warn(message: string): void {
    this.warnings.push(message);
  }
  override error(message: string, fields: LogFields = {}, cause?: unknown): void {
    this.errors.push({ message, fields, cause });
  }
}

describe('trust list renewal', () => {
  let world: World;
  let caller: TenantCaller;
  let publisher: TrustListPublisher;
  let log: RecordingLog;
  let renewal: RenewTrustLists;

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    caller = world.caller(['issuance:manage']);
    publisher = new TrustListPublisher(world);
    log = new RecordingLog();
    renewal = new RenewTrustLists({ ...world, log, trustListPublisher: publisher });
  });

  const create = (id: string, keyChainId?: string) =>
    new CreateTrustList({ ...world, trustListPublisher: publisher }).execute(caller, {
      id,
      entities: ENTITIES,
      ...(keyChainId !== undefined && { keyChainId }),
    });
  const addKeyChain = (id: string, certValidityDays: number) =>
    new CreateKeyChain(world).execute(caller, { id, usageType: 'trustList', certValidityDays });
  /** Removes a key chain directly from the store, although a list uses it. */
  const loseKeyChain = (id: string) => world.store.forTenant(ACME, ({ keyChains }) => keyChains.remove(id), { by: 'system' });
  const get = (id: string) => new GetTrustList(world).execute(caller, id);
  const numbers = async (...ids: string[]) => Promise.all(ids.map(async (id) => (await get(id)).sequenceNumber));
  /** Renews all lists, page by page. */
  const renewAll = async (limit = 100) => {
    let page = await renewal.execute(world.clock.now(), limit);
    let { renewed } = page;
    while (page.last !== undefined) {
      page = await renewal.execute(world.clock.now(), limit, page.last);
      renewed += page.renewed;
    }
    return renewed;
  };

  it('renews lists that expire soon, in batches, and no others', async () => {
    for (const id of ['a', 'b', 'c']) await create(id);
    world.clock.forward(15 * DAYS);
    await create('young');
    world.clock.forward(6 * DAYS);
    expect(await renewAll(2)).to.equal(3);
    expect(await numbers('a', 'b', 'c', 'young')).to.deep.equal([2, 2, 2, 1]);
    expect(await renewAll(2)).to.equal(0);
    const { createdAt, updatedAt, nextUpdate } = await get('a');
    expect(updatedAt).to.deep.equal(world.clock.now());
    expect(updatedAt.getTime() - createdAt.getTime()).to.equal(21 * DAYS);
    expect(nextUpdate.getTime() - updatedAt.getTime()).to.equal(30 * DAYS);
  });

  it('continues when a list cannot be signed, and logs a remedy', async () => {
    await addKeyChain('lost', 365);
    await create('a', 'lost');
    await create('b');
    await loseKeyChain('lost');
    world.clock.forward(21 * DAYS);
    expect(await renewAll()).to.equal(1);
    expect(await numbers('a', 'b')).to.deep.equal([1, 2]);
    expect(log.errors).to.have.length(1);
    const [{ message, fields, cause } = { message: '', fields: {} }] = log.errors;
    expect(message).to.match(/cannot be signed again.*set a key chain/);
    expect(fields).to.include({ tenantId: 'acme', trustListId: 'a' });
    expect(String(cause)).to.include('no key chain "lost"');
  });

  it('also continues when a key chain of an entity is removed', async () => {
    await create('a');
    await loseKeyChain('signing');
    world.clock.forward(21 * DAYS);
    expect(await renewAll()).to.equal(0);
    expect(await numbers('a')).to.deep.equal([1]);
    expect(log.errors).to.have.length(1);
  });

  it('does not sign repeatedly for an expiring certificate, and logs a warning', async () => {
    await addKeyChain('short', 15);
    const { nextUpdate } = await create('a', 'short');
    expect(nextUpdate.getTime() - world.clock.now().getTime()).to.be.within(14.9 * DAYS, 15 * DAYS);
    world.clock.forward(6 * DAYS);
    expect([await renewAll(), await renewAll()]).to.deep.equal([0, 0]);
    expect(await numbers('a')).to.deep.equal([1]);
    expect(log.warnings[0]).to.match(/expires with the certificate of its signer.*set a key chain/);
    const update = new UpdateTrustList({ trustListPublisher: publisher });
    const changed = await update.execute(caller, 'a', { keyChainId: null });
    expect(changed.signedBy).to.equal('trust-list');
    expect(changed.nextUpdate > nextUpdate).to.equal(true);
    expect(log.errors).to.deep.equal([]);
  });

  it('runs once when several processes try', async () => {
    await create('a');
    world.clock.forward(21 * DAYS);
    const instances = Array.from(
      { length: 5 },
      () => new RenewTrustLists({ ...world, log, trustListPublisher: new TrustListPublisher(world) }),
    );
    const results = await Promise.all(instances.map((instance) => instance.execute(world.clock.now(), 10)));
    expect(results.map(({ renewed }) => renewed).sort()).to.deep.equal([0, 0, 0, 0, 1]);
    expect(await numbers('a')).to.deep.equal([2]);
  });

  it('changes nothing while the key provider does not answer', async () => {
    const before = await create('a');
    world.clock.forward(21 * DAYS);
    const sign = sinon.stub(world.kms, 'sign').rejects(new Failure('unavailable', 'no answer'));
    expect(await renewAll()).to.equal(0);
    expect(await codeOf(create('b'))).to.equal('unavailable');
    sign.restore();
    expect(await get('a')).to.deep.equal(before);
    expect(await codeOf(get('b'))).to.equal('not_found');
    expect(await renewAll()).to.equal(1);
  });
});
