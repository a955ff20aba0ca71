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
  let attacker: CertifiedKey;
  const operators = new Map<string, CertifiedKey>();
  const issuers = new Map<string, CertifiedKey>();
  const published = new Map<string, string | RemoteError>();

  before(async () => {
    europe = await certify({ name: 'Europe' });
    attacker = await certify({ name: 'Foe' });
    for (const territory of ['DE', 'FR', 'IT']) {
      operators.set(territory, await certify({ name: `Operator ${territory}` }));
      issuers.set(territory, await certify({ name: `Issuer ${territory}`, ca: true }));
    }
  });
  beforeEach(async () => {
    clock = new SetClock();
    remote = new FakeRemote();
    remote.answer = (url) => {
      const text = published.get(url) ?? new RemoteError('unreachable', 'unreachable');
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
    publishPointers(['DE', 'FR', 'IT'].map((territory) => pointer(territory)));
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
  const publishPointers = (pointers: readonly XmlPointer[], by = europe) =>
    published.set(LOTL, signXml(xmlList({ ...dates, type: LIST_OF_LISTS, territory: 'EU', pointers }), by));
  const source = (changes: Partial<ListSource> = {}): ListSource => ({
    ...{ uri: LOTL, signers: signersOf([europe.certificate]), purpose: credentialIssuers(), follow: {} },
    ...changes,
  });
  const query = (listSource = source()) => queryLists(lists, ACME, [listSource]);
  /** Returns the territories whose issuer is trusted. */
  const vouchedTerritories = async (listSource = source()) => {
    const anchors = [...(await collectAnchors(await query(listSource))).values()].map(({ certificate }) => certificate);
    return [...issuers].flatMap(([territory, { certificate }]) => (anchors.includes(certificate) ? [territory] : []));
  };
  const rejections = async (listSource = source()) =>
    (await query(listSource)).flatMap((answer) => ('refusal' in answer ? [answer.refusal.message] : []));

  it('leads to the national lists, each with the signer that it names', async () => {
    expect(await vouchedTerritories()).to.deep.equal(['DE', 'FR', 'IT']);
    const [anchor] = (await collectAnchors(await query())).values();
    expect(anchor?.listings[0]?.list).to.deep.equal({ uri: addressOf('DE'), sequenceNumber: 1, via: LOTL });
  });

  it('is followed only if the configuration enables it', async () => {
    const { follow: _follow, ...unsaid } = source();
    expect(await vouchedTerritories(unsaid)).to.deep.equal([]);
    const [rejection] = await rejections(unsaid);
    expect(rejection).to.match(/^malformed: it only points to other lists/);
  });

  it('is only followed to the selected territories, and no other list is fetched', async () => {
    expect(await vouchedTerritories(source({ follow: { territories: ['FR'] } }))).to.deep.equal(['FR']);
    expect(remote.calls.map(({ url }) => url)).to.deep.equal([LOTL, addressOf('FR')]);
  });

  it('returns the same objects as long as nothing changes, so that derived values stay cached', async () => {
    const listSource = source();
    expect(areSame(await query(listSource), await query(listSource))).to.equal(true);
    expect(remote.calls).to.have.length(4);
  });

  const brokenLists: Readonly<Record<string, [() => void, RegExp]>> = {
    'cannot be had': [() => published.delete(addressOf('FR')), /^unavailable/],
    'is signed by another key': [() => national('FR', {}, attacker), /^untrusted_signer/],
    'is signed by the operator of another list': [() => national('FR', {}, signerOf('DE')), /^untrusted_signer/],
    'belongs to another territory': [() => national('FR', { territory: 'DE' }), /^another_list: its territory is DE, not FR/],
    'has no territory': [
      () => published.set(addressOf('FR'), signXml(xmlList(dates), signerOf('FR'))),
      /^another_list: its territory is missing, not FR/,
    ],
    'has expired': [() => national('FR', { nextUpdate: '2020-02-01T00:00:00Z' }), /^outdated/],
    'points to lists itself': [
      () => national('FR', { type: LIST_OF_LISTS, pointers: [pointer('IT')] }),
      /^malformed: it only points to other lists: lists are followed one level deep/,
    ],
  };
  for (const [description, [breakList, reason]] of Object.entries(brokenLists)) {
    it(`skips a national list that ${description}, so its issuers are not trusted`, async () => {
      breakList();
      expect(await vouchedTerritories()).to.deep.equal(['DE', 'IT']);
      const [rejection, ...rest] = await rejections();
      expect([rejection, rest]).to.satisfy(
        ([firstMessage, otherMessages]: [string, string[]]) => reason.test(firstMessage) && otherMessages.length === 0,
      );
    });
  }

  it('waits for unresponsive lists no longer than the common timeout', async () => {
    const { request } = remote;
    remote.request = (url, options) => (url === addressOf('FR') ? new Promise(() => {}) : request.call(remote, url, options));
    const answer = await queryLists(lists, ACME, [source()], 1_000);
    const anchors = [...(await collectAnchors(answer)).values()].map(({ certificate }) => certificate);
    expect(anchors).to.deep.equal([certificateOf('DE'), certificateOf('IT')]);
    const [rejection] = answer.flatMap((result) => ('refusal' in result ? [result.refusal.message] : []));
    expect(rejection).to.equal('unavailable: it was not downloaded and parsed in time');
  });

  it('with another signer is not followed', async () => {
    publishPointers([pointer('DE')], attacker);
    expect(await vouchedTerritories()).to.deep.equal([]);
    expect(remote.calls).to.have.length(1);
  });

  it('is not followed in cycles: pointers to itself, to lists of lists and to human-readable lists are ignored', async () => {
    publishPointers([
      pointer('DE', { uri: LOTL, signers: [europe.certificate], territory: 'EU' }),
      pointer('DE', { uri: 'https://other.example/lotl', type: LIST_OF_LISTS, territory: 'EU' }),
      pointer('DE', { uri: 'https://de.example/list.pdf', mimeType: 'application/pdf' }),
      pointer('DE', { uri: 'no address' }),
      pointer('FR', { signers: [] }),
      pointer('IT'),
      pointer('IT', { signers: [attacker.certificate] }),
    ]);
    expect(await vouchedTerritories()).to.deep.equal(['IT']);
    expect(remote.calls.map(({ url }) => url)).to.deep.equal([LOTL, addressOf('IT')]);
  });

  it('with more lists than countries is rejected', async () => {
    const publishMany = (count: number) =>
      publishPointers(Array.from({ length: count }, (_, index) => pointer('DE', { uri: `https://${index}.example/`, territory: 'XX' })));
    publishMany(65);
    expect(await rejections()).to.deep.equal(['malformed: it has too many pointers']);
  });

  it('with too many pointers is rejected, even if they are invalid', async () => {
    const PointersToOtherLoTE = Array.from({ length: 257 }, () => ({ LoTELocation: 'no address' }));
    const scheme = { LoTEType: 'x', PointersToOtherLoTE };
    published.set(LOTL, trustList({ entities: [], signer: europe, scheme }, Math.floor(clock.time / 1000)));
    expect(await rejections()).to.deep.equal(['malformed: it has too many pointers']);
  });

  it('skips only the affected list after an unexpected error', async () => {
    const { get } = lists;
    lists.get = (tenantId, uri, ...rest) =>
      uri === addressOf('FR') ? Promise.reject(new RangeError('x')) : get.call(lists, tenantId, uri, ...rest);
    expect(await vouchedTerritories()).to.deep.equal(['DE', 'IT']);
    expect(await rejections()).to.deep.equal(['unavailable: it cannot be parsed']);
    lists.get = () => Promise.reject(new StoreUnavailableError('no database'));
    expect(await query().catch((error: unknown) => error), 'none of a list').to.be.instanceOf(StoreUnavailableError);
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
    expect(await vouchedTerritories()).to.deep.equal(['DE', 'FR']);
    published.set(addressOf('DE'), trustList({ entities: [german], signer: attacker, scheme: { SchemeTerritory } }, seconds));
    lists.clear(ACME);
    clock.time += 3 * 3_600_000;
    expect(await vouchedTerritories(), 'the valid copy').to.deep.equal(['DE', 'FR']);
  });

  it('is followed for pointers with any number of qualifiers', () => {
    const qualifiers = [{ SchemeTerritory: 'DE' }, ...Array.from({ length: 300_000 }, () => ({}))];
    const identity = { X509Certificates: [{ val: 'AAAA' }] };
    const pointerToList = {
      ...{ LoTELocation: 'https://lists.example/de', ServiceDigitalIdentities: [identity] },
      LoTEQualifiers: qualifiers,
    };
    expect(parsePointers([pointerToList]).map(({ territory }) => territory)).to.deep.equal(['DE']);
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
const selectedCertificates = (...entities: ListedEntity[]) => select(...entities).map(({ certificate }) => certificate);

describe('certificates of wallet providers on a trust list', () => {
  before(async () => {
    provider = await WalletProvider.make();
    first = await certify({ name: 'First', ca: true });
    second = await certify({ name: 'Second' });
  });

  for (const type of ['WalletSolution/Issuance', 'WalletProvider']) {
    it(`are those of services of the type ${type}`, () => {
      const all = [first.certificate, second.certificate];
      expect(selectedCertificates(entity('A', service(type, ...all)))).to.deep.equal(all);
    });
  }
  for (const type of [
    ...['WalletSolution/Revocation', 'PID/Issuance', 'EAA/Issuance', 'WRPAC/Issuance'],
    ...['walletprovider', 'WalletProvider/', ''],
  ]) {
    it(`exclude services of the type "${type}"`, () => {
      expect(selectedCertificates(entity('A', service(type, first.certificate)))).to.deep.equal([]);
    });
  }

  it('exclude a service with a status, since these lists have none', () => {
    for (const ServiceStatus of ['http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/withdrawn', 'granted', 7]) {
      const listedService = { ...service('WalletProvider', first.certificate), more: { ServiceStatus } };
      expect(selectedCertificates(entity('A', listedService))).to.deep.equal([]);
    }
  });

  it('are parsed with and without white space', () => {
    const brokenLists = `${first.certificate.slice(0, 40)}AAAA`;
    const withSpaces = `${first.certificate.slice(0, 64)}\n${first.certificate.slice(64)}\n`;
    const listedService = service('WalletProvider', 'nonsense!', brokenLists, '', withSpaces);
    expect(selectedCertificates(entity('A', listedService))).to.deep.equal([first.certificate]);
  });

  it('are absent for a service that is identified by other data', () => {
    const rest = { ServiceDigitalIdentity: { X509SKIs: ['AAAA'] } };
    expect(selectedCertificates(entity('A', { ...service('WalletProvider'), more: rest }))).to.deep.equal([]);
  });

  it('belong to the revocation service of the same entity and of no other', () => {
    const [firstIssuer, secondIssuer] = select(
      entity('A', service('WalletProvider', first.certificate)),
      entity('B', service('WalletSolution/Issuance', second.certificate), service('WalletSolution/Revocation', first.certificate)),
    );
    expect([firstIssuer?.entity.name, firstIssuer?.revocation]).to.deep.equal(['A', undefined]);
    const revokers = secondIssuer?.revocation?.map(({ certificate }) => certificate);
    expect([secondIssuer?.entity.name, revokers]).to.deep.equal(['B', [first.certificate]]);
  });

  it('have no revocation signer if the revocation service has no usable certificate', () => {
    const [anchor] = select(entity('A', service('WalletProvider', first.certificate), service('WalletSolution/Revocation', 'nonsense')));
    expect(anchor?.revocation).to.deep.equal([]);
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
