import { hash } from 'node:crypto';
import { expect } from 'chai';
import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import { Log, type LogFields } from '../../../application/ports/log.ts';
import { RemoteError, type RemoteResponse } from '../../../application/ports/remote.ts';
import { type OpenedList, type ReadingOptions, TrustListReader } from '../../../application/ports/trust-list-reader.ts';
import { TenantConfigurations } from '../../../application/tenant-cache/tenant-configurations.ts';
import { TrustLists } from '../../../application/trust-lists/remote-trust-lists.ts';
import { pinSigners } from '../../../application/trust-lists/verify-trust-list.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { TrustListRefusal } from '../../../domain/trust-lists/trust-list-refusal.ts';
import { addTenant } from '../../contract/store/builders.ts';
import { inlineTrustLists } from '../../support/fakes.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { type CertifiedKey, certify, pem, UNREADABLE_TIMES, WEB_SERVER } from '../../support/test-certificates.ts';
import type { ListOptions } from '../../support/trust-list.ts';
import { WalletProvider } from '../../support/wallet-provider.ts';
import { ACME, FakeRemote, FakeSettings, SetClock } from '../verification/kit.ts';

const URI = 'https://operator.example/lote?key=secret';
const MINUTE = 60_000;

class RecordingLog extends Log {
  readonly warnings: LogFields[] = [];
  override info(): void {}
  override warn(_message: string, fields: LogFields = {}): void {
    this.warnings.push(fields);
  }
  override error(): void {}
}

/** Opens lists after a wait, as one does whose turn is late. */
class WaitingReader extends TrustListReader {
  override async open(bytes: Uint8Array, options: ReadingOptions): Promise<OpenedList> {
    const opened = await inlineTrustLists().open(bytes, options);
    clock.time += 10 * MINUTE;
    return opened;
  }
}

const OTHER = 'other' as TenantId;

let store: MemoryStore;
let clock: SetClock;
let remote: FakeRemote;
let log: RecordingLog;
let provider: WalletProvider;
let lists: TrustLists;

const iso = (seconds: number) => new Date(clock.time + seconds * 1000).toISOString();
const settle = async () => {
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setTimeout(resolve, 20));
};

function publish(options: ListOptions | RemoteError | Partial<RemoteResponse> = {}): void {
  const isList = !(options instanceof Error) && !('status' in options) && !('body' in options);
  const body = Buffer.from(isList ? provider.list(options as ListOptions) : '');
  remote.answer = () =>
    options instanceof RemoteError ? options : { status: 200, contentType: 'application/jwt', body, ...(isList ? {} : options) };
}

function startProcess(trustListReader: TrustListReader = inlineTrustLists()): TrustLists {
  const eventBus = new InProcessEventBus();
  const ports = { store, remote, clock, log, trustListReader };
  const settings = new FakeSettings();
  const tenantConfigurations = new TenantConfigurations({ store, settings, eventBus, clock });
  return new TrustLists({ ...ports, tenantConfigurations, settings, eventBus });
}

/** The names of the entities, or why the list is not used. */
async function read(signers: readonly CertifiedKey[] = [provider.operator], tenant = ACME): Promise<string> {
  try {
    const { entities } = await lists.get(tenant, URI, pinSigners(signers.map(pem)));
    return entities.map(({ name }) => name).join(',');
  } catch (error) {
    if (error instanceof TrustListRefusal) return error.fault;
    throw error;
  }
}

async function readOf(options: ListOptions): Promise<string> {
  publish(options);
  return read();
}

const named = (name: string, sequenceNumber: number): ListOptions => ({ sequenceNumber, entities: [{ ...provider.entity(), name }] });

describe('trust list', () => {
  beforeEach(async () => {
    clock = new SetClock();
    remote = new FakeRemote();
    log = new RecordingLog();
    store = new MemoryStore();
    await store.prepare('a tenant that reads trust lists', () => addTenant(store, { id: ACME }));
    lists = startProcess();
    provider = await WalletProvider.make(() => Math.floor(clock.time / 1000));
    publish();
  });

  describe('is trusted', () => {
    it('when a pinned certificate signed it', async () => {
      expect(await read()).to.equal('Wallet Provider');
      expect(remote.following, 'also where it has moved').to.deep.equal([URI]);
    });
    it('when a pinned CA certified its signer', async () => {
      const ca = await certify({ name: 'Operators', ca: true });
      const signer = await certify({ name: 'Operator 2', by: ca });
      publish({ signer });
      expect(await read([ca])).to.equal('Wallet Provider');
    });
    it('when the pinned certificate is self-signed and a CA', async () => {
      const signer = await certify({ name: 'Self', ca: true });
      publish({ signer });
      expect(await read([signer])).to.equal('Wallet Provider');
    });
    it('but not when a certificate for another purpose signed it, pinned or under a pinned CA', async () => {
      const ca = await certify({ name: 'Operators', ca: true });
      for (const by of [ca, undefined]) {
        const signer = await certify({ name: 'Web', ...(by && { by }), purposes: [WEB_SERVER] });
        publish({ signer });
        expect(await read([by ?? signer])).to.equal('untrusted_signer');
        lists.clear(ACME);
        const right = await certify({ name: 'Lists', ...(by && { by }), purposes: ['0.4.0.2231.3.0'] });
        publish({ signer: right });
        expect(await read([by ?? right])).to.equal('Wallet Provider');
        lists.clear(ACME);
      }
    });
    it('when it names a pinned certificate by its hash instead of including it', async () => {
      const thumbprint = (signer: CertifiedKey) => hash('sha256', Buffer.from(signer.certificate, 'base64'), 'base64url');
      publish({ header: { x5c: undefined, 'x5t#S256': thumbprint(provider.operator) } });
      expect(await read()).to.equal('Wallet Provider');
      lists.clear(ACME);
      await store.lists(ACME).dropCopies();
      const stranger = await certify({ name: 'Stranger' });
      publish({ signer: stranger, header: { x5c: undefined, 'x5t#S256': thumbprint(stranger) } });
      expect(await read()).to.equal('untrusted_signer');
      publish({ signer: stranger, header: { x5c: undefined, 'x5t#S256': thumbprint(provider.operator) } });
      expect(await read([provider.operator, stranger])).to.equal('signature');
    });
    it('with either signing time, critical or not, and without a type', async () => {
      const sigT = iso(-60).replace(/\.\d+/, '');
      const seconds = Math.floor(clock.time / 1000) - 60;
      for (const header of [
        { iat: undefined, sigT, crit: ['sigT'] },
        { iat: seconds, crit: ['iat'] },
        { b64: true, crit: ['b64'] },
        { typ: undefined, kid: 'x' },
        ...['JOSE', 'JWT', 'trustlist+jwt', 'application/lote+jwt'].map((typ) => ({ typ })),
      ]) {
        expect(await readOf({ header })).to.equal('Wallet Provider');
        lists.clear(ACME);
      }
    });
    it('unless it has the type of another token', async () => {
      for (const typ of ['statuslist+jwt', 'kb+jwt', 'dc+sd-jwt', 'application/oauth-authz-req+jwt', 7, null]) {
        expect(await readOf({ header: { typ } }), String(typ)).to.equal('malformed');
        lists.clear(ACME);
      }
    });
    it('with unknown properties, and extensions that are not critical', async () => {
      const scheme = { Colour: 'green', SchemeExtensions: [{ Other: 1 }, { Critical: false }] };
      expect(await readOf({ scheme })).to.equal('Wallet Provider');
    });
    it('without entities, and trusts no issuer', async () => {
      expect(await readOf({ entities: [] })).to.equal('');
    });
    it('when it is closed, and trusts no issuer', async () => {
      expect(await readOf({ scheme: { NextUpdate: null } })).to.equal('');
    });
  });

  describe('is rejected', () => {
    const rows: readonly [string, () => ListOptions, string][] = [
      ['without x5c', () => ({ header: { x5c: undefined } }), 'untrusted_signer'],
      ['with alg none', () => ({ header: { alg: 'none' } }), 'algorithm'],
      ['with alg HS256', () => ({ header: { alg: 'HS256' } }), 'algorithm'],
      ['with an alg that is not that of the key', () => ({ header: { alg: 'ES384' } }), 'algorithm'],
      ['with a critical header that is unknown', () => ({ header: { crit: ['x'], x: 1 } }), 'critical_extension'],
      ['with crit that names nothing', () => ({ header: { crit: [] } }), 'critical_extension'],
      ['with crit that names an absent property', () => ({ header: { crit: ['sigT'] } }), 'critical_extension'],
      ['with crit that names a property twice', () => ({ header: { crit: ['iat', 'iat'] } }), 'critical_extension'],
      ['with an unencoded payload', () => ({ header: { b64: false, crit: ['b64'] } }), 'critical_extension'],
      ['with a signing time in the future', () => ({ header: { iat: clock.time / 1000 + 301 } }), 'from_the_future'],
      ['with a signing time that is invalid', () => ({ header: { iat: undefined, sigT: 'today' } }), 'malformed'],
      ['of another version', () => ({ scheme: { LoTEVersionIdentifier: 2 } }), 'version'],
      ['without a version', () => ({ scheme: { LoTEVersionIdentifier: undefined } }), 'version'],
      ['without a number', () => ({ scheme: { LoTESequenceNumber: undefined } }), 'malformed'],
      ['with the number 0', () => ({ scheme: { LoTESequenceNumber: 0 } }), 'malformed'],
      ['with the number 1.5', () => ({ scheme: { LoTESequenceNumber: 1.5 } }), 'malformed'],
      ['without an issue time', () => ({ scheme: { ListIssueDateTime: undefined } }), 'malformed'],
      ['with an issue time in the future', () => ({ scheme: { ListIssueDateTime: iso(301) } }), 'from_the_future'],
      ['without NextUpdate', () => ({ scheme: { NextUpdate: undefined } }), 'malformed'],
      ['with a NextUpdate that is invalid', () => ({ scheme: { NextUpdate: '2026-13-01T00:00:00Z' } }), 'malformed'],
      ['after NextUpdate', () => ({ scheme: { NextUpdate: iso(0) } }), 'outdated'],
      ['with a critical extension', () => ({ scheme: { SchemeExtensions: [{ Critical: true }] } }), 'critical_extension'],
      ['that is not a list', () => ({ payload: { list: [] } }), 'malformed'],
      ['whose entities are no list', () => ({ payload: { LoTE: { TrustedEntitiesList: {} } } }), 'malformed'],
    ];
    for (const [what, options, expected] of rows) {
      it(what, async () => {
        expect(await readOf(options())).to.equal(expected);
        expect(log.warnings).to.have.length(1);
      });
    }

    it('when a service has a critical extension', async () => {
      const [issuance] = provider.entity().services;
      const more = { ServiceInformationExtensions: [{ critical: 'true' }] };
      const services = [{ ...issuance, type: 'WalletProvider', certificates: [], more }];
      expect(await readOf({ entities: [{ name: 'X', services }] })).to.equal('critical_extension');
    });
    it('when it has another signer', async () => {
      const somebody = await certify({ name: 'Scheme Operator' });
      expect(await readOf({ signer: somebody })).to.equal('untrusted_signer');
    });
    it('when another key signed it in the name of the pinned certificate', async () => {
      expect(await readOf({ signer: { ...provider.operator, ...newKey() } })).to.equal('signature');
    });
    it('when its content was changed after it was signed', async () => {
      const [header, , signature] = provider.list().split('.');
      const [, payload] = provider.list(named('Mallory', 2)).split('.');
      publish({ body: Buffer.from(`${header}.${payload}.${signature}`) });
      expect(await read()).to.equal('signature');
    });
    for (const [what, validity] of Object.entries(UNREADABLE_TIMES)) {
      it(`when the pinned certificate has ${what}`, async () => {
        const signer = await certify({ name: 'Endless', validity });
        publish({ signer });
        expect(await read([signer])).to.equal('untrusted_signer');
      });
    }
    it('when the pinned certificate expired', async () => {
      const signer = await certify({ name: 'Old', until: '2026-05-01T00:00:00Z' });
      publish({ signer });
      expect(await read([signer])).to.equal('untrusted_signer');
    });
    it('without a request when no certificate is pinned', async () => {
      expect(await read([])).to.equal('untrusted_signer');
      expect(remote.calls).to.have.length(0);
    });
    it('when it is unavailable or malformed', async () => {
      publish(new RemoteError('timeout', 'late'));
      expect(await read()).to.equal('unavailable');
      clock.time += MINUTE;
      publish({ status: 404 });
      expect(await read()).to.equal('unavailable');
      clock.time += MINUTE;
      publish({ body: Buffer.from('<html>') });
      expect(await read()).to.equal('malformed');
    });
    it('and the reason is logged, without secrets of the address', async () => {
      publish({ scheme: { LoTEVersionIdentifier: 2 } });
      await read();
      expect(log.warnings).to.deep.equal([{ tenantId: ACME, list: 'https://operator.example/lote', reason: 'version' }]);
    });
  });

  describe('is cached', () => {
    it('and fetched once for concurrent callers', async () => {
      const answers = await Promise.all(Array.from({ length: 50 }, () => read()));
      expect(new Set(answers)).to.deep.equal(new Set(['Wallet Provider']));
      expect(remote.calls).to.have.length(1);
    });
    it('separately for each tenant and each set of certificates', async () => {
      await read();
      await read(undefined, OTHER);
      expect(await read([await certify({ name: 'Somebody' })])).to.equal('untrusted_signer');
      expect(remote.calls).to.have.length(3);
      expect(lists.stats(ACME).size).to.equal(1);
    });
    it('for an hour, and renewed in the background after half of it', async () => {
      await read();
      clock.time += 29 * MINUTE;
      publish(named('Second', 2));
      expect(await read()).to.equal('Wallet Provider');
      await settle();
      expect(remote.calls).to.have.length(1);
      clock.time += MINUTE;
      expect(await read()).to.equal('Wallet Provider');
      await settle();
      expect(await read()).to.equal('Second');
      expect(remote.calls).to.have.length(2);
    });
    it('as the same object while its content is unchanged', async () => {
      const signers = pinSigners([pem(provider.operator)]);
      const first = await lists.get(ACME, URI, signers);
      clock.time += 61 * MINUTE;
      expect(await lists.get(ACME, URI, signers)).to.equal(first);
      expect(remote.calls).to.have.length(2);
    });
    it('for an hour at most, although it cannot be renewed', async () => {
      await read();
      publish(new RemoteError('timeout', 'late'));
      clock.time += 59 * MINUTE;
      expect(await read()).to.equal('Wallet Provider');
      clock.time += MINUTE;
      expect(await read()).to.equal('unavailable');
    });
    it('until NextUpdate at most, and fetched at most every five minutes before', async () => {
      publish({ scheme: { NextUpdate: iso(400) } });
      await read();
      clock.time += 299_000;
      await read();
      await settle();
      expect(remote.calls).to.have.length(1);
      clock.time += 101_000;
      expect(await read()).to.equal('outdated');
      expect(remote.calls).to.have.length(2);
    });
    it('but not when it expired while it waited to be parsed', async () => {
      lists = startProcess(new WaitingReader());
      publish({ scheme: { NextUpdate: iso(9 * 60) } });
      expect(await read()).to.equal('outdated');
      publish({ scheme: { NextUpdate: iso(11 * 60) }, sequenceNumber: 2 });
      clock.time += 15_000;
      expect(await read()).to.equal('Wallet Provider');
    });
    it('as failed for 15 seconds after a failure', async () => {
      publish(new RemoteError('timeout', 'late'));
      await read();
      publish();
      clock.time += 14_999;
      expect(await read()).to.equal('unavailable');
      expect(remote.calls).to.have.length(1);
      clock.time += 1;
      expect(await read()).to.equal('Wallet Provider');
    });
    it('until the cache of its tenant is cleared', async () => {
      await read();
      await read(undefined, OTHER);
      publish(named('Second', 2));
      lists.clear(ACME);
      expect(lists.stats(ACME).entries).to.deep.equal([]);
      expect([await read(), await read(undefined, OTHER)]).to.deep.equal(['Second', 'Wallet Provider']);
    });
    it('but not when the cache was cleared during the fetch', async () => {
      const early = read();
      lists.clear(ACME);
      publish(named('Second', 2));
      expect(await read()).to.equal('Second');
      await early;
      expect(await read()).to.equal('Second');
    });
    it('and counted', async () => {
      await read();
      await read();
      const { size, hits, misses, entries } = lists.stats(ACME);
      expect({ size, hits, misses }).to.deep.equal({ size: 1, hits: 1, misses: 1 });
      const expiresAt = new Date(clock.time + 60 * MINUTE);
      expect(entries).to.deep.equal([{ uri: URI, fetchedAt: clock.now(), expiresAt }]);
      expect(lists.stats(OTHER)).to.deep.equal({ size: 0, hits: 0, misses: 0, entries: [], failing: [] });
    });
  });

  describe('is never replaced', () => {
    beforeEach(async () => {
      publish(named('Fifth', 5));
      await read();
      clock.time += 31 * MINUTE;
    });
    const renew = async (options: ListOptions) => {
      publish(options);
      await read();
      await settle();
      return read();
    };

    it('by a lower number', async () => {
      expect(await renew(named('Fourth', 4))).to.equal('Fifth');
      expect(log.warnings[0]?.['reason']).to.equal('sequence_went_back: its number is 4, the newest one is 5');
    });
    it('by other content, but by the same content with later dates under the same number, with a warning', async () => {
      const end = () => new Date(clock.time + 40 * 24 * 60 * MINUTE).toISOString();
      const redated = () => {
        const { scheme, ...rest } = named('Fifth', 5);
        publish({ ...rest, scheme: { ...scheme, NextUpdate: end(), ListIssueDateTime: clock.now().toISOString() } });
      };
      redated();
      await read();
      await settle();
      expect(await read()).to.equal('Fifth');
      expect(log.warnings.map(({ reason, sequenceNumber }) => [reason, sequenceNumber])).to.deep.equal([[undefined, 5]]);
      clock.time += 61 * MINUTE;
      expect(await read()).to.equal('Fifth');
      lists = startProcess();
      clock.time += MINUTE;
      redated();
      expect(await read(), 'also a process that starts anew').to.equal('Fifth');
    });
    it('by a list that was closed or opened under the same number', async () => {
      const { scheme, ...rest } = named('Fifth', 5);
      expect(await renew({ ...rest, scheme: { ...scheme, NextUpdate: null } })).to.equal('Fifth');
      expect(log.warnings[0]?.['reason']).to.equal('sequence_reused: its number 5 is that of a list with other content');
    });
    it('by other content under the same number', async () => {
      expect(await renew(named('Another', 5))).to.equal('Fifth');
      expect(log.warnings[0]?.['reason']).to.equal('sequence_reused: its number 5 is that of a list with other content');
    });
    it('by an older copy, whose lifetime is not extended', async () => {
      await renew(named('Fourth', 4));
      clock.time += 29 * MINUTE;
      expect(await read()).to.equal('sequence_went_back');
    });
    it('by a lower number when the cache is cleared', async () => {
      lists.clear(ACME);
      publish(named('Fourth', 4));
      expect(await read()).to.equal('sequence_went_back');
    });
    it('by a lower number after a restart of the process', async () => {
      lists = startProcess();
      publish(named('Fourth', 4));
      expect(await read()).to.equal('sequence_went_back');
    });
    it('by a lower number when another certificate is pinned beside its signer', async () => {
      const other = await certify({ name: 'Other' });
      publish(named('Fourth', 4));
      expect(await read([provider.operator, other])).to.equal('sequence_went_back');
    });
    it('by a number without a possible successor', async () => {
      expect(await renew(named('Last', Number.MAX_SAFE_INTEGER))).to.equal('Fifth');
      expect(log.warnings[0]?.['reason']).to.match(
        /^sequence_jumped: its number is 9007199254740991, the newest one is 5; .*releases=true/,
      );
      clock.time += 31 * MINUTE;
      expect(await renew(named('Sixth', 6)), 'the list goes on').to.equal('Sixth');
    });
    it('except by a higher number, also of a closed list', async () => {
      expect(await renew(named('Sixth', 6))).to.equal('Sixth');
      clock.time += 31 * MINUTE;
      expect(await renew({ sequenceNumber: 7, scheme: { NextUpdate: null } })).to.equal('');
    });
  });
});
