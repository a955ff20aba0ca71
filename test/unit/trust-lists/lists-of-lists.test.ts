import { expect } from 'chai';
import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import { Log } from '../../../application/ports/log.ts';
import { RemoteError } from '../../../application/ports/remote.ts';
import { StoreUnavailableError } from '../../../application/ports/store.ts';
import { TenantConfigurations } from '../../../application/tenant-cache/tenant-configurations.ts';
import { areSame, collectAnchors, type ListSource } from '../../../application/trust-lists/listed-anchors.ts';
import { queryLists } from '../../../application/trust-lists/query-lists.ts';
import { TrustLists } from '../../../application/trust-lists/remote-trust-lists.ts';
import { signersOf } from '../../../application/trust-lists/verify-trust-list.ts';
import { parseCompactJws } from '../../../domain/formats/jose/compact.ts';
import { parsePointers } from '../../../domain/trust-lists/list-pointer.ts';
import { parseTrustList } from '../../../domain/trust-lists/lote.ts';
import { credentialIssuers, selectCertificates, WALLET_PROVIDERS } from '../../../domain/trust-lists/select-certificates.ts';
import { addTenant } from '../../contract/store/builders.ts';
import { inlineTrustLists } from '../../support/fakes.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { type CertifiedKey, certify } from '../../support/test-certificates.ts';
import { type ListedEntity, type ListedService, trustList } from '../../support/trust-list.ts';
import { WalletProvider } from '../../support/wallet-provider.ts';
import { LIST_OF_LISTS, signXml, type XmlList, type XmlPointer, xmlList } from '../../support/xml-list.ts';
import { ACME, FakeRemote, FakeSettings, SetClock } from '../verification/kit.ts';

const LOTL = 'https://lists.example/lotl';
const TYPE = 'http://uri.etsi.org/TrstSvc/Svctype/EAA/Q';
const XML = 'application/vnd.etsi.tsl+xml';
const addressOf = (territory: string) => `https://${territory.toLowerCase()}.example/list`;

class SilentLog extends Log {
  override info(): void {}
  override warn(): void {}
  override error(): void {}
}

describe('list of lists', () => {
  let clock: SetClock;
  let remote: FakeRemote;
  let lists: TrustLists;
  let europe: CertifiedKey;
  let foe: CertifiedKey;
  const operators = new Map<string, CertifiedKey>();
  const issuers = new Map<string, CertifiedKey>();
  const published = new Map<string, string | RemoteError>();

  before(async () => {
    europe = await certify({ name: 'Europe' });
    foe = await certify({ name: 'Foe' });
    for (const territory of ['DE', 'FR', 'IT']) {
      operators.set(territory, await certify({ name: `Operator ${territory}` }));
      issuers.set(territory, await certify({ name: `Issuer ${territory}`, ca: true }));
    }
  });
  beforeEach(async () => {
    clock = new SetClock();
    remote = new FakeRemote();
    remote.answer = (url) => {
      const text = published.get(url) ?? new RemoteError('unreachable', 'nobody there');
      return text instanceof Error ? text : { status: 200, contentType: XML, body: Buffer.from(text) };
    };
    const store = new MemoryStore();
    await store.prepare('a tenant that reads trust lists', () => addTenant(store, { id: ACME }));
    const settings = new FakeSettings();
    const eventBus = new InProcessEventBus();
    lists = new TrustLists({
      ...{ store, remote, clock, settings, eventBus, log: new SilentLog() },
      trustListReader: inlineTrustLists(),
      tenantConfigurations: new TenantConfigurations({ store, settings, eventBus, clock }),
    });
    published.clear();
    for (const territory of operators.keys()) national(territory);
    pointTo(['DE', 'FR', 'IT'].map((territory) => pointer(territory)));
  });

  const dates = { issuedAt: '2020-01-01T00:00:00Z', nextUpdate: '2049-01-01T00:00:00Z' };
  const signerOf = (territory: string) => operators.get(territory) as CertifiedKey;
  const certificateOf = (territory: string) => issuers.get(territory)?.certificate ?? '';
  const national = (territory: string, changes: XmlList = {}, by = signerOf(territory)) => {
    const services = [{ type: TYPE, since: dates.issuedAt, certificates: [certificateOf(territory)] }];
    published.set(addressOf(territory), signXml(xmlList({ ...dates, territory, services, ...changes }), by));
  };
  const pointer = (territory: string, changes: Partial<XmlPointer> = {}): XmlPointer => ({
    ...{ uri: addressOf(territory), territory, mimeType: XML },
    ...{ signers: [signerOf(territory).certificate], ...changes },
  });
  const pointTo = (pointers: readonly XmlPointer[], by = europe) =>
    published.set(LOTL, signXml(xmlList({ ...dates, type: LIST_OF_LISTS, territory: 'EU', pointers }), by));
  const source = (changes: Partial<ListSource> = {}): ListSource => ({
    ...{ uri: LOTL, signers: signersOf([europe.certificate]), purpose: credentialIssuers(), follow: {} },
    ...changes,
  });
  const ask = (one = source()) => queryLists(lists, ACME, [one]);
  /** Territories whose issuer counts. */
  const vouched = async (one = source()) => {
    const anchors = [...(await collectAnchors(await ask(one))).values()].map(({ certificate }) => certificate);
    return [...issuers].flatMap(([territory, { certificate }]) => (anchors.includes(certificate) ? [territory] : []));
  };
  const refusals = async (one = source()) => (await ask(one)).flatMap((asked) => ('refusal' in asked ? [asked.refusal.message] : []));

  it('leads to the national lists, each with the signer that it names', async () => {
    expect(await vouched()).to.deep.equal(['DE', 'FR', 'IT']);
    const [anchor] = (await collectAnchors(await ask())).values();
    expect(anchor?.listings[0]?.list).to.deep.equal({ uri: addressOf('DE'), sequenceNumber: 1, via: LOTL });
  });

  it('is followed only if the configuration enables it', async () => {
    const { follow: _follow, ...unsaid } = source();
    expect(await vouched(unsaid)).to.deep.equal([]);
    const [refusal] = await refusals(unsaid);
    expect(refusal).to.match(/^malformed: it only points to other lists/);
  });

  it('is only followed to the selected territories, and no other list is fetched', async () => {
    expect(await vouched(source({ follow: { territories: ['FR'] } }))).to.deep.equal(['FR']);
    expect(remote.calls.map(({ url }) => url)).to.deep.equal([LOTL, addressOf('FR')]);
  });

  it('returns the same objects as long as nothing changes, so that derived values stay cached', async () => {
    const one = source();
    expect(areSame(await ask(one), await ask(one))).to.equal(true);
    expect(remote.calls).to.have.length(4);
  });

  const broken: Readonly<Record<string, [() => void, RegExp]>> = {
    'cannot be had': [() => published.delete(addressOf('FR')), /^unavailable/],
    'is signed by somebody else': [() => national('FR', {}, foe), /^untrusted_signer/],
    'is signed by who signs another one': [() => national('FR', {}, signerOf('DE')), /^untrusted_signer/],
    'is that of another territory': [() => national('FR', { territory: 'DE' }), /^another_list: its territory is DE, not FR/],
    'says no territory': [
      () => published.set(addressOf('FR'), signXml(xmlList(dates), signerOf('FR'))),
      /^another_list: its territory is missing, not FR/,
    ],
    'has ended': [() => national('FR', { nextUpdate: '2020-02-01T00:00:00Z' }), /^outdated/],
    'points to lists itself': [
      () => national('FR', { type: LIST_OF_LISTS, pointers: [pointer('IT')] }),
      /^malformed: it only points to other lists: lists are followed one level deep/,
    ],
  };
  for (const [what, [breakIt, reason]] of Object.entries(broken)) {
    it(`skips a national list that ${what}, so its issuers are not trusted`, async () => {
      breakIt();
      expect(await vouched()).to.deep.equal(['DE', 'IT']);
      const [refusal, ...more] = await refusals();
      expect([refusal, more]).to.satisfy(([one, others]: [string, string[]]) => reason.test(one) && others.length === 0);
    });
  }

  it('waits for unresponsive lists no longer than the common timeout', async () => {
    const { request } = remote;
    remote.request = (url, options) => (url === addressOf('FR') ? new Promise(() => {}) : request.call(remote, url, options));
    const asked = await queryLists(lists, ACME, [source()], 1_000);
    const anchors = [...(await collectAnchors(asked)).values()].map(({ certificate }) => certificate);
    expect(anchors).to.deep.equal([certificateOf('DE'), certificateOf('IT')]);
    const [refusal] = asked.flatMap((one) => ('refusal' in one ? [one.refusal.message] : []));
    expect(refusal).to.equal('unavailable: it was not downloaded and parsed in time');
  });

  it('with another signer is not followed', async () => {
    pointTo([pointer('DE')], foe);
    expect(await vouched()).to.deep.equal([]);
    expect(remote.calls).to.have.length(1);
  });

  it('is not followed in cycles: pointers to itself, to lists of lists and to human-readable lists are ignored', async () => {
    pointTo([
      pointer('DE', { uri: LOTL, signers: [europe.certificate], territory: 'EU' }),
      pointer('DE', { uri: 'https://other.example/lotl', type: LIST_OF_LISTS, territory: 'EU' }),
      pointer('DE', { uri: 'https://de.example/list.pdf', mimeType: 'application/pdf' }),
      pointer('DE', { uri: 'no address' }),
      pointer('FR', { signers: [] }),
      pointer('IT'),
      pointer('IT', { signers: [foe.certificate] }),
    ]);
    expect(await vouched()).to.deep.equal(['IT']);
    expect(remote.calls.map(({ url }) => url)).to.deep.equal([LOTL, addressOf('IT')]);
  });

  it('with more lists than countries is rejected', async () => {
    const many = (count: number) =>
      pointTo(Array.from({ length: count }, (_, at) => pointer('DE', { uri: `https://${at}.example/`, territory: 'XX' })));
    many(65);
    expect(await refusals()).to.deep.equal(['malformed: it has too many pointers']);
  });

  it('with too many pointers is rejected, even if they are invalid', async () => {
    const PointersToOtherLoTE = Array.from({ length: 257 }, () => ({ LoTELocation: 'no address' }));
    const scheme = { LoTEType: 'x', PointersToOtherLoTE };
    published.set(LOTL, trustList({ entities: [], signer: europe, scheme }, Math.floor(clock.time / 1000)));
    expect(await refusals()).to.deep.equal(['malformed: it has too many pointers']);
  });

  it('skips only the affected list after an unexpected error', async () => {
    const { get } = lists;
    lists.get = (tenantId, uri, ...more) =>
      uri === addressOf('FR') ? Promise.reject(new RangeError('x')) : get.call(lists, tenantId, uri, ...more);
    expect(await vouched()).to.deep.equal(['DE', 'IT']);
    expect(await refusals()).to.deep.equal(['unavailable: it cannot be parsed']);
    lists.get = () => Promise.reject(new StoreUnavailableError('no database'));
    expect(await ask().catch((error: unknown) => error), 'none of a list').to.be.instanceOf(StoreUnavailableError);
  });

  it('may be one of trusted entities, and point to lists of either form', async () => {
    const seconds = Math.floor(clock.time / 1000);
    const german = { name: 'R', services: [{ type: 'PID/Issuance', certificates: [certificateOf('DE')] }] };
    const SchemeTerritory = 'DE';
    const signer = signerOf('DE');
    published.set(addressOf('DE'), trustList({ entities: [german], signer, scheme: { SchemeTerritory } }, seconds));
    const pointers = ['DE', 'FR'].map((territory) => ({
      LoTELocation: addressOf(territory),
      ServiceDigitalIdentities: [{ X509Certificates: [{ val: signerOf(territory).certificate }] }],
      LoTEQualifiers: [{ LoTEType: 'x', SchemeTerritory: territory, MimeType: 'application/jwt' }],
    }));
    const scheme = { LoTEType: 'x', PointersToOtherLoTE: pointers };
    published.set(LOTL, trustList({ entities: [], signer: europe, scheme }, seconds));
    expect(await vouched()).to.deep.equal(['DE', 'FR']);
    published.set(addressOf('DE'), trustList({ entities: [german], signer: foe, scheme: { SchemeTerritory } }, seconds));
    lists.clear(ACME);
    clock.time += 3 * 3_600_000;
    expect(await vouched(), 'the good copy').to.deep.equal(['DE', 'FR']);
  });

  it('is followed for pointers with any number of qualifiers', () => {
    const qualifiers = [{ SchemeTerritory: 'DE' }, ...Array.from({ length: 300_000 }, () => ({}))];
    const signed = { X509Certificates: [{ val: 'AAAA' }] };
    const one = { ...{ LoTELocation: 'https://lists.example/de', ServiceDigitalIdentities: [signed] }, LoTEQualifiers: qualifiers };
    expect(parsePointers([one]).map(({ territory }) => territory)).to.deep.equal(['DE']);
  });
});

let provider: WalletProvider;
let first: CertifiedKey;
let second: CertifiedKey;

function select(...entities: ListedEntity[]) {
  const payload = parseCompactJws(provider.list({ entities }))?.payload ?? {};
  return selectCertificates(parseTrustList(payload, new Date()), WALLET_PROVIDERS);
}

const service = (type: string, ...certificates: string[]): ListedService => ({ type, certificates });
const entity = (name: string, ...services: ListedService[]): ListedEntity => ({ name, services });
const chosen = (...entities: ListedEntity[]) => select(...entities).map(({ certificate }) => certificate);

describe('certificates of wallet providers on a trust list', () => {
  before(async () => {
    provider = await WalletProvider.make();
    first = await certify({ name: 'First', ca: true });
    second = await certify({ name: 'Second' });
  });

  for (const type of ['WalletSolution/Issuance', 'WalletProvider']) {
    it(`are those of services of the type ${type}`, () => {
      const all = [first.certificate, second.certificate];
      expect(chosen(entity('A', service(type, ...all)))).to.deep.equal(all);
    });
  }
  for (const type of [
    ...['WalletSolution/Revocation', 'PID/Issuance', 'EAA/Issuance', 'WRPAC/Issuance'],
    ...['walletprovider', 'WalletProvider/', ''],
  ]) {
    it(`exclude services of the type "${type}"`, () => {
      expect(chosen(entity('A', service(type, first.certificate)))).to.deep.equal([]);
    });
  }

  it('exclude a service with a status, since these lists have none', () => {
    for (const ServiceStatus of ['http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/withdrawn', 'granted', 7]) {
      const listed = { ...service('WalletProvider', first.certificate), more: { ServiceStatus } };
      expect(chosen(entity('A', listed))).to.deep.equal([]);
    }
  });

  it('are parsed with and without white space', () => {
    const broken = `${first.certificate.slice(0, 40)}AAAA`;
    const spaced = `${first.certificate.slice(0, 64)}\n${first.certificate.slice(64)}\n`;
    const listed = service('WalletProvider', 'nonsense!', broken, '', spaced);
    expect(chosen(entity('A', listed))).to.deep.equal([first.certificate]);
  });

  it('are absent for a service that is identified by other data', () => {
    const more = { ServiceDigitalIdentity: { X509SKIs: ['AAAA'] } };
    expect(chosen(entity('A', { ...service('WalletProvider'), more }))).to.deep.equal([]);
  });

  it('belong to the revocation service of the same entity and of no other', () => {
    const [one, other] = select(
      entity('A', service('WalletProvider', first.certificate)),
      entity('B', service('WalletSolution/Issuance', second.certificate), service('WalletSolution/Revocation', first.certificate)),
    );
    expect([one?.entity.name, one?.revocation]).to.deep.equal(['A', undefined]);
    const revokers = other?.revocation?.map(({ certificate }) => certificate);
    expect([other?.entity.name, revokers]).to.deep.equal(['B', [first.certificate]]);
  });

  it('have no revocation signer if the revocation service has no usable certificate', () => {
    const [one] = select(entity('A', service('WalletProvider', first.certificate), service('WalletSolution/Revocation', 'nonsense')));
    expect(one?.revocation).to.deep.equal([]);
  });

  it('distinguish entities of one name by their other properties', () => {
    const document = parseCompactJws(provider.list({ entities: [entity('A', service('WalletProvider', first.certificate)), entity('A')] }))
      ?.payload as Record<string, Record<string, Record<string, unknown>[]>>;
    const entities = document['LoTE']?.['TrustedEntitiesList'] ?? [];
    const information = entities[1]?.['TrustedEntityInformation'] as Record<string, unknown>;
    const idsOf = () => parseTrustList(document as never, new Date()).entities.map(({ id }) => id);
    expect(new Set(idsOf()).size).to.equal(1);
    information['TETradeName'] = [{ lang: 'en', value: 'VATDE-1' }];
    expect(new Set(idsOf()).size).to.equal(2);
  });
});
