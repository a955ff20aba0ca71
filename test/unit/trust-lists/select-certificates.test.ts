import { expect } from 'chai';
import { parseCompactJws } from '../../../domain/formats/jose/compact.ts';
import { readTrustList } from '../../../domain/trust-lists/lote.ts';
import { selectCertificates, WALLET_PROVIDERS } from '../../../domain/trust-lists/select-certificates.ts';
import { type Certified, certify } from '../../support/test-certificates.ts';
import type { ListedEntity, ListedService } from '../../support/trust-list.ts';
import { WalletProvider } from '../../support/wallet-provider.ts';

let provider: WalletProvider;
let first: Certified;
let second: Certified;

function select(...entities: ListedEntity[]) {
  const payload = parseCompactJws(provider.list({ entities }))?.payload ?? {};
  return selectCertificates(readTrustList(payload, new Date()), WALLET_PROVIDERS);
}

const service = (type: string, ...certificates: string[]): ListedService => ({ type, certificates });
const entity = (name: string, ...services: ListedService[]): ListedEntity => ({ name, services });
const chosen = (...entities: ListedEntity[]) => select(...entities).map(({ certificate }) => certificate);

describe('The certificates of a trust list that vouch for wallets', () => {
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
    it(`are not those of services of the type "${type}"`, () => {
      expect(chosen(entity('A', service(type, first.certificate)))).to.deep.equal([]);
    });
  }

  it('are not those of a service with a status, since these lists have none', () => {
    for (const ServiceStatus of [
      'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/withdrawn',
      'granted',
      7,
    ]) {
      const listed = { ...service('WalletProvider', first.certificate), more: { ServiceStatus } };
      expect(chosen(entity('A', listed))).to.deep.equal([]);
    }
  });

  it('are those that parse, white space or not', () => {
    const broken = `${first.certificate.slice(0, 40)}AAAA`;
    const spaced = `${first.certificate.slice(0, 64)}\n${first.certificate.slice(64)}\n`;
    const listed = service('WalletProvider', 'nonsense!', broken, '', spaced);
    expect(chosen(entity('A', listed))).to.deep.equal([first.certificate]);
  });

  it('are none of a service that is known by something else', () => {
    const more = { ServiceDigitalIdentity: { X509SKIs: ['AAAA'] } };
    expect(chosen(entity('A', { ...service('WalletProvider'), more }))).to.deep.equal([]);
  });

  it('go with the revocation service of the same entity and of no other', () => {
    const [one, other] = select(
      entity('A', service('WalletProvider', first.certificate)),
      entity(
        'B',
        service('WalletSolution/Issuance', second.certificate),
        service('WalletSolution/Revocation', first.certificate),
      ),
    );
    expect([one?.entity.name, one?.revocation]).to.deep.equal(['A', undefined]);
    const revokers = other?.revocation?.map(({ certificate }) => certificate);
    expect([other?.entity.name, revokers]).to.deep.equal(['B', [first.certificate]]);
  });

  it('go with nobody where the revocation service has no usable certificate', () => {
    const [one] = select(
      entity(
        'A',
        service('WalletProvider', first.certificate),
        service('WalletSolution/Revocation', 'nonsense'),
      ),
    );
    expect(one?.revocation).to.deep.equal([]);
  });

  it('tell entities of one name apart by what else they say', () => {
    const document = parseCompactJws(
      provider.list({ entities: [entity('A', service('WalletProvider', first.certificate)), entity('A')] }),
    )?.payload as Record<string, Record<string, Record<string, unknown>[]>>;
    const entities = document['LoTE']?.['TrustedEntitiesList'] ?? [];
    const information = entities[1]?.['TrustedEntityInformation'] as Record<string, unknown>;
    const idsOf = () => readTrustList(document as never, new Date()).entities.map(({ id }) => id);
    expect(new Set(idsOf()).size).to.equal(1);
    information['TETradeName'] = [{ lang: 'en', value: 'VATDE-1' }];
    expect(new Set(idsOf()).size).to.equal(2);
  });
});
