import { expect } from 'chai';
import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import type { EventPublisher, HeldListNotice } from '../../../application/ports/event-publisher.ts';
import { Log } from '../../../application/ports/log.ts';
import { RemoteError } from '../../../application/ports/remote.ts';
import { TenantConfigurations } from '../../../application/tenant-cache/tenant-configurations.ts';
import { ForecastTrust, TrustForecastQuery } from '../../../application/trust-forecast/trust-forecast.ts';
import { ConfirmSigner, ListFollowedLists } from '../../../application/trust-lists/followed-lists.ts';
import { collectAnchors } from '../../../application/trust-lists/listed-anchors.ts';
import { TrustLists } from '../../../application/trust-lists/remote-trust-lists.ts';
import { reportHeldLists } from '../../../application/trust-lists/report-held-lists.ts';
import { pinSigners, thumbprintOf } from '../../../application/trust-lists/verify-trust-list.ts';
import { trustListsProbe } from '../../../bootstrap/wiring/trust-lists-check.ts';
import { assertNoSequenceJump } from '../../../domain/trust-lists/freshness.ts';
import type { TrustList } from '../../../domain/trust-lists/lote.ts';
import { WALLET_PROVIDERS } from '../../../domain/trust-lists/select-certificates.ts';
import { TrustListRefusal } from '../../../domain/trust-lists/trust-list-refusal.ts';
import { addTenant } from '../../contract/store/builders.ts';
import { inlineTrustLists } from '../../support/fakes.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { type CertifiedKey, certify, pem } from '../../support/test-certificates.ts';
import type { ListOptions } from '../../support/trust-list.ts';
import { WalletProvider } from '../../support/wallet-provider.ts';
import { signXml, type XmlList, xmlList } from '../../support/xml-list.ts';
import { ACME, FakeRemote, FakeSettings, SetClock } from '../verification/kit.ts';
import { outcomeOf, WalletWorld } from '../wallet-kit.ts';

const LOCATION = { uri: 'https://lists.example/list' };

describe('followed trust lists of a tenant', () => {
  let world: WalletWorld;
  let signer: CertifiedKey;
  before(async () => {
    signer = await certify({ name: 'Another operator' });
  });
  beforeEach(async () => {
    world = await WalletWorld.open();
  });

  const confirm = async (id: string, fingerprint: string) =>
    outcomeOf(new ConfirmSigner(world).execute(await world.caller(), id, { fingerprint }));
  const storeCopy = (id: string, by: string | undefined) =>
    world.store
      .lists(ACME)
      .recordProblem(
        id,
        LOCATION,
        { fault: 'untrusted_signer', reason: 'the signer is unknown', ...(by !== undefined && { signer: by }) },
        world.clock.now(),
      );

  it('are returned with their problem', async () => {
    await storeCopy('one', signer.certificate);
    const [first, ...rest] = await new ListFollowedLists(world).execute(await world.caller());
    expect(rest).to.deep.equal([]);
    expect([first?.id, first?.place, first?.held?.signer]).to.deep.equal(['one', LOCATION, signer.certificate]);
  });

  it('accept a new signer only while one is pending, by its fingerprint, if a configuration names the list', async () => {
    const fingerprint = thumbprintOf(signer.certificate);
    expect(await confirm('none', fingerprint)).to.equal('not_found');
    await storeCopy('unknown', undefined);
    expect(await confirm('unknown', fingerprint)).to.equal('conflict');
    await storeCopy('one', signer.certificate);
    expect(await confirm('one', thumbprintOf((await certify({ name: 'Other' })).certificate))).to.equal('invalid_input');
    expect(await confirm('one', fingerprint), 'no configuration names it').to.equal('conflict');
  });

  it('are listed by expiry, like the keys of the tenant, in ascending and descending order', async () => {
    const listedUris = async (query: object) => {
      const caller = { ...(await world.caller()), roles: ['issuance:manage', 'presentation:manage'] as const };
      return new ForecastTrust(world).execute(caller, TrustForecastQuery.parse(query));
    };
    const { items, next } = await listedUris({});
    expect(items.filter(({ kind }) => kind === 'key-chain')).to.not.deep.equal([]);
    expect(next).to.equal(undefined);
    const keys = items.map(({ key }) => key);
    expect(keys).to.deep.equal(keys.toSorted());
    expect((await listedUris({ sort: 'desc' })).items.map(({ key }) => key)).to.deep.equal(keys.toReversed());
    const page = await listedUris({ limit: 1 });
    expect(page.next).to.equal(keys[0]);
    expect((await listedUris({ limit: 1, cursor: page.next })).items.map(({ key }) => key)).to.deep.equal([keys[1]]);
  });
});

const NOW = new Date('2026-12-31T23:59:59Z');
const HOUR_MS = 3_600_000;

/** Returns the problem of a sequence number after another one that was seen `hours` before. */
function sequenceProblem(before: number | undefined, next: number, hours = 1): string {
  const seenAt = new Date(NOW.getTime() - hours * HOUR_MS);
  const previous = before === undefined ? undefined : { sequenceNumber: before, contentHash: 'x', seenAt };
  try {
    assertNoSequenceJump(previous, { sequenceNumber: next, contentHash: 'y' }, NOW);
    return 'accepted';
  } catch (error) {
    return (error as Error).message.split(':')[0] ?? '';
  }
}

describe('sequence numbers of trust lists', () => {
  for (const [description, before, next, hours] of [
    ['the next one', 7, 8, 0],
    ['a later one', 7, 900, 0],
    ['seconds since 1970', 1_798_700_000, 1_798_703_600, 1],
    ['milliseconds since 1970', 1_798_700_000_000, 1_798_703_600_000, 1],
    ['a date', 20261230, 20261231, 24],
    ['a date over the end of the year', 20261231, 20270101, 1],
    ['a date with a count', 2026123101, 2027010101, 1],
    ['date and time of day', 20261231235958, 20270101000001, 0],
    ['counting, then dates', 12, 20261231, 1],
    ['a first one in milliseconds', undefined, 1_798_703_600_000, 0],
    ['a first one of a date and milliseconds', undefined, 202612312359591, 0],
  ] as const) {
    it(`are accepted: ${description}`, () => expect(sequenceProblem(before, next, hours)).to.equal('accepted'));
  }

  for (const [description, before, next, hours] of [
    ['near the end', 7, Number.MAX_SAFE_INTEGER, 1],
    ['near the end after years', 7, Number.MAX_SAFE_INTEGER, 50_000],
    ['near the end at first', undefined, Number.MAX_SAFE_INTEGER, 1],
    ['of future dates', 20261231, 20991231, 0],
    ['of no date', 20261231, 20269999, 0],
    ['of a million at once', 7, 1_000_000, 0],
  ] as const) {
    it(`are rejected: ${description}`, () => expect(sequenceProblem(before, next, hours)).to.equal('sequence_jumped'));
  }
});

const SERVICE_TYPE = 'http://uri.etsi.org/19602/SvcType';

/** Collects the anchors and counts the turns of other work meanwhile. */
async function gatherWithInterleaving(lists: readonly TrustList[]) {
  const signers = { id: '', anchors: [] };
  const followedLists = lists.map((list, index) => ({
    source: { uri: `https://lists.example/${index}`, signers, purpose: WALLET_PROVIDERS },
    list,
  }));
  let otherTurns = 0;
  let isGathering = true;
  const countTurns = () => {
    otherTurns++;
    if (isGathering) setImmediate(countTurns);
  };
  setImmediate(countTurns);
  const anchors = await collectAnchors(followedLists);
  isGathering = false;
  return { size: anchors.size, otherTurns };
}

/** Creates a list of one entity whose services have these numbers of certificates. */
function listWithCounts(type: string, counts: readonly number[], name = 'one'): TrustList {
  const services = counts.map((count, service) => {
    const certificateNames = (description: string) =>
      Array.from({ length: count }, (_, index) => `${description} ${name} ${service} ${index}`);
    return { type: `${SERVICE_TYPE}/${type}`, certificates: certificateNames('certificate'), hashes: certificateNames('hash') };
  });
  return { sequenceNumber: 1, entities: [{ id: 'one', name: 'One', services }] } as unknown as TrustList;
}

describe('collectAnchors', () => {
  for (const [type, count] of [
    ['WalletSolution/Issuance', 1_000],
    ['WalletSolution/Revocation', 0],
    ['PID/Issuance', 0],
  ] as const) {
    it(`yields after each 100 services of one entity, of the type ${type}`, async () => {
      const { size, otherTurns } = await gatherWithInterleaving([listWithCounts(type, Array(1_000).fill(1))]);
      expect(size).to.equal(count);
      expect(otherTurns).to.be.at.least(10);
    });
  }

  for (const type of ['WalletSolution/Issuance', 'WalletSolution/Revocation'])
    it(`yields after each 100 certificates of one service, of the type ${type}`, async () => {
      const { otherTurns } = await gatherWithInterleaving([listWithCounts(type, [500, 500])]);
      expect(otherTurns).to.be.at.least(10);
    });

  it('yields between small lists', async () => {
    const lists = Array.from({ length: 20 }, (_, index) => listWithCounts('WalletSolution/Issuance', [50], `list ${index}`));
    const { size, otherTurns } = await gatherWithInterleaving(lists);
    expect(size).to.equal(1_000);
    expect(otherTurns).to.be.at.least(10);
  });

  it('reads one small list without a pause', async () => {
    const { size, otherTurns } = await gatherWithInterleaving([listWithCounts('WalletSolution/Issuance', [5])]);
    expect([size, otherTurns]).to.deep.equal([5, 0]);
  });
});

const URI = 'https://operator.example/lote?key=secret';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

class SilentLog extends Log {
  override info(): void {}
  override warn(): void {}
  override error(): void {}
}

describe('stored copy of a followed trust list', () => {
  let store: MemoryStore;
  let clock: SetClock;
  let remote: FakeRemote;
  let provider: WalletProvider;
  let untrusted: CertifiedKey;
  let lists: TrustLists;

  const iso = (milliseconds: number) => new Date(clock.time + milliseconds).toISOString();
  const certificateNames = (name: string, sequenceNumber: number, scheme: object = {}): ListOptions => ({
    sequenceNumber,
    entities: [{ ...provider.entity(), name }],
    scheme: { NextUpdate: iso(30 * DAY), ...scheme },
  });
  const answer = (body: string) => {
    remote.answer = () => ({ status: 200, contentType: 'application/jwt', body: Buffer.from(body) });
  };
  const publish = (options: ListOptions) => answer(provider.list(options));
  const restart = () => {
    const settings = new FakeSettings();
    const eventBus = new InProcessEventBus();
    lists = new TrustLists({
      ...{ store, remote, clock, settings, eventBus, log: new SilentLog() },
      trustListReader: inlineTrustLists(),
      tenantConfigurations: new TenantConfigurations({ store, settings, eventBus, clock }),
    });
  };
  const read = (signer: CertifiedKey = provider.operator) =>
    lists.get(ACME, URI, pinSigners([pem(signer)])).then(
      ({ entities }) => entities.map(({ name }) => name).join(','),
      (error: unknown) => {
        if (error instanceof TrustListRefusal) return error.fault;
        throw error;
      },
    );
  const events = () =>
    store.forTenant(ACME, async ({ audit }) => {
      const entries = await audit.list({ limit: 20, ascending: true, kind: 'followed-trust-list' } as never);
      return entries.map(({ action, target, detail }) => ({ action, target, ...JSON.parse(detail) }));
    });
  const storedCopy = async () => (await store.lists(ACME).storedLists(10))[0];
  const isHealthy = () =>
    trustListsProbe(store, clock, new InProcessEventBus())
      .check()
      .then(
        () => true,
        () => false,
      );

  beforeEach(async () => {
    clock = new SetClock();
    remote = new FakeRemote();
    store = new MemoryStore();
    await store.prepare('a tenant that reads trust lists', () => addTenant(store, { id: ACME }));
    provider = await WalletProvider.make(() => Math.floor(clock.time / 1000));
    untrusted = await certify({ name: 'Other CA' });
    restart();
    publish(certificateNames('Fifth', 5));
    expect(await read()).to.equal('Fifth');
  });

  it('is used after a restart while its list is unavailable, for the rest of its hour', async () => {
    remote.answer = () => new RemoteError('timeout', 'late');
    clock.time += HOUR - 60_000;
    restart();
    expect(await read()).to.equal('Fifth');
    clock.time += 60_000;
    restart();
    expect(await read()).to.equal('unavailable');
  });

  it('is not stored for a large list, even if an earlier release of the list was small', async () => {
    const manyEntities = Array.from({ length: 600 }, (_, index) => ({ ...provider.entity(), name: `${index} Sixth` }));
    publish({ ...certificateNames('Sixth', 6), entities: manyEntities });
    clock.time += 2 * HOUR;
    restart();
    expect(await read()).to.match(/^0 Sixth,1 Sixth/);
    remote.answer = () => new RemoteError('timeout', 'late');
    restart();
    expect(await read()).to.equal('unavailable');
  });

  it('is used until it expires if other content has its number, which is reported by an event and the health check', async () => {
    publish(certificateNames('Another', 5));
    clock.time += 2 * HOUR;
    restart();
    expect([await read(), await isHealthy()]).to.deep.equal(['Fifth', false]);
    const { failing } = lists.stats(ACME);
    expect(failing.map(({ uri, reason }) => [uri, reason])).to.deep.equal([
      [URI, 'sequence_reused: its number 5 is that of a list with other content'],
    ]);
    clock.time += 26 * DAY;
    restart();
    publish(certificateNames('Another', 5));
    expect(await read(), 'weeks later').to.equal('Fifth');
    const [event, ...rest] = await events();
    expect(rest, 'reported once').to.deep.equal([]);
    expect(event).to.deep.include({ action: 'held', target: 'https://operator.example/lote' });
    expect(JSON.stringify(event))
      .to.include('sequence_reused: its number 5 is that of a list with other content')
      .and.not.include('secret');
    clock.time += 5 * DAY;
    expect(await read(), 'it has expired').to.equal('sequence_reused');
    publish(certificateNames('Sixth', 6));
    clock.time += 60_000;
    expect([await read(), await isHealthy()]).to.deep.equal(['Sixth', true]);
  });

  it('does not replace a copy of an older or damaged release', async () => {
    restart();
    publish(certificateNames('Fourth', 4));
    expect(await read()).to.equal('sequence_went_back');
    clock.time += 60_000;
    answer('<html>moved</html>');
    expect(await read()).to.equal('malformed');
  });

  it('stays in use if the signer changes; the new signer is not trusted and waits for confirmation', async () => {
    const publishUntrusted = () => answer(provider.list({ ...certificateNames('Changed', 6), signer: untrusted }));
    clock.time += 2 * HOUR;
    publishUntrusted();
    expect([await read(), await isHealthy()]).to.deep.equal(['Fifth', false]);
    expect((await storedCopy())?.held).to.deep.include({ fault: 'untrusted_signer', signer: untrusted.certificate });
    restart();
    clock.time += HOUR;
    expect(await read()).to.equal('Fifth');
    const [event, ...rest] = await events();
    expect(rest).to.deep.equal([]);
    expect(JSON.stringify(event)).to.include(thumbprintOf(untrusted.certificate));
    clock.time += 30 * DAY;
    publishUntrusted();
    expect(await read(), 'it has expired').to.equal('untrusted_signer');
  });

  it('is reported once for each waiting list, and again if the broker did not receive it', async () => {
    const listedUris: HeldListNotice[] = [];
    let answer: 'accepted' | 'refused' | 'lost' = 'lost';
    const publisher = {
      isReady: true,
      async publishHeldList(notice: HeldListNotice) {
        if (answer === 'lost') throw new Error('the broker is unavailable');
        listedUris.push(notice);
        return answer === 'accepted';
      },
    } as unknown as EventPublisher;
    const reportNow = () => reportHeldLists({ maintenance: store.maintenance, publisher, log: new SilentLog() });
    await reportNow();
    publish(certificateNames('Another', 5));
    clock.time += 2 * HOUR;
    await read();
    expect(await reportNow().catch(() => 'lost')).to.equal('lost');
    answer = 'accepted';
    await reportNow();
    await reportNow();
    expect(listedUris).to.have.length(1);
    expect(listedUris[0]).to.deep.include({ tenantId: ACME, list: 'https://operator.example/lote' });
    expect(JSON.stringify(listedUris)).not.to.include('secret');
    publish(certificateNames('Sixth', 6));
    clock.time += 2 * HOUR;
    await read();
    publish(certificateNames('Another', 6));
    clock.time += 2 * HOUR;
    await read();
    answer = 'refused';
    await reportNow();
    await reportNow();
    expect(listedUris, 'a publisher that rejects it is not called again').to.have.length(2);
  });

  it('reports no signer with an invalid signature', async () => {
    const borrowed = provider.list({ ...certificateNames('Borrowed', 6), header: { x5c: [untrusted.certificate] } });
    answer(borrowed);
    clock.time += 2 * HOUR;
    expect(await read()).to.equal('Fifth');
    const signerOfCopy = (await storedCopy())?.held;
    expect([signerOfCopy?.fault, signerOfCopy?.signer]).to.deep.equal(['untrusted_signer', undefined]);
  });

  it('stays in use if the list of another territory is served at its address', async () => {
    publish(certificateNames('German', 6, { SchemeTerritory: 'DE' }));
    clock.time += 2 * HOUR;
    expect(await read()).to.equal('German');
    publish(certificateNames('French', 7, { SchemeTerritory: 'FR' }));
    clock.time += 2 * HOUR;
    expect(await read()).to.equal('German');
    expect((await storedCopy())?.held?.reason).to.equal('another_list: its territory is FR, not DE');
  });

  it('belongs to one set of signers and one tenant', async () => {
    restart();
    answer(provider.list({ ...certificateNames('Changed', 6), signer: untrusted }));
    const thirdCopy = await certify({ name: 'Third' });
    expect(await read(thirdCopy)).to.equal('untrusted_signer');
  });

  it('is not used for an unavailable list after the cache was cleared', async () => {
    await store.lists(ACME).distrustCopies();
    restart();
    remote.answer = () => new RemoteError('timeout', 'late');
    expect(await read()).to.equal('unavailable');
    clock.time += 60_000;
    publish(certificateNames('Another', 5));
    expect(await read()).to.equal('Fifth');
  });

  it('is removed a week after it expired and was last used', async () => {
    const { maintenance } = store;
    const forget = (days: number) => maintenance.forgetStoredTrustLists(new Date(clock.time + days * DAY), 10);
    expect(await forget(29)).to.equal(0);
    expect([await forget(31), await storedCopy()]).to.deep.equal([1, undefined]);
  });

  describe('in XML', () => {
    const publishXml = (list: XmlList, by: CertifiedKey) => answer(signXml(xmlList(list), by));
    const loadProblem = async () => {
      restart();
      clock.time += 60_000;
      return read();
    };

    it('is the same release with other dates, and another one with other content', async () => {
      const operator = await certify({ name: 'Operator' });
      const ownList = (rest: XmlList) => publishXml({ sequenceNumber: 9, issuedAt: '2020-01-01T00:00:00Z', ...rest }, operator);
      const get = () =>
        lists.get(ACME, URI, pinSigners([pem(operator)])).then(
          (list) => list.nextUpdate?.toISOString(),
          (error: Error) => error.message,
        );
      ownList({ nextUpdate: iso(DAY) });
      const first = await get();
      await loadProblem();
      ownList({ nextUpdate: iso(2 * DAY) });
      restart();
      const second = await get();
      expect([first, second]).to.have.length(2);
      expect(second).to.not.equal(first);
      ownList({ nextUpdate: iso(3 * DAY), version: '5' });
      restart();
      expect(await get(), 'the valid copy').to.equal(second);
      publishXml({ sequenceNumber: 10, issuedAt: '2020-01-01T00:00:00Z' }, untrusted);
      restart();
      expect(await get()).to.equal(second);
      const signerOfCopy = (await store.lists(ACME).storedLists(10)).map((copy) => copy.held?.signer);
      expect(signerOfCopy).to.include(untrusted.certificate);
    });
  });
});
