import { expect } from 'chai';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { NO_ORGANIZATION } from '../../../domain/tenants/organization.ts';
import { composeList } from '../../../domain/trust-lists/compose-list.ts';
import { assertCertificatesValid, keyChainIdsOf } from '../../../domain/trust-lists/entity-certificates.ts';
import { normalizeNotices } from '../../../domain/trust-lists/legal-notice.ts';
import { MAX_ENTITIES, type TrustListEntity, TrustListReplacement } from '../../../domain/trust-lists/list-configuration.ts';
import { parseTrustList } from '../../../domain/trust-lists/lote.ts';
import { documentOf, selectListSigner } from '../../../domain/trust-lists/published-list.ts';
import type { SchemeInformation, TrustListData } from '../../../domain/trust-lists/scheme-information.ts';
import { aKeyChain } from '../../contract/store/builders.ts';
import { type CertifiedKey, certify, pem } from '../../support/test-certificates.ts';

const NOW = new Date('2026-06-01T12:00:00.987Z');
const ETSI = 'http://uri.etsi.org/19602';
const OPERATOR = { ...NO_ORGANIZATION, name: 'Acme' };
const DAYS = 24 * 60 * 60 * 1000;

let root: CertifiedKey;
let leaf: CertifiedKey;
let formerLeaf: CertifiedKey;
let external: CertifiedKey;
let expired: CertifiedKey;
let chains: readonly KeyChain[];

const leafOf = ({ certificate }: CertifiedKey, notAfter = new Date('2030-01-01T00:00:00Z')) => ({
  ...aKeyChain('acme' as never, 'x').active,
  certificates: [certificate],
  notAfter,
});
const chain = (id: string, changes: Partial<KeyChain> = {}): KeyChain => ({
  ...aKeyChain('acme' as never, id),
  active: leafOf(leaf),
  ...changes,
});

/** Composes the document of these entities. `scheme` is the information of the operator. */
function compose(entities: readonly TrustListEntity[] = [], scheme?: SchemeInformation) {
  const data = scheme && { LoTE: { ListAndSchemeInformation: scheme } };
  const document = composeList({
    configuration: { entities, ...(data !== undefined && { data }) },
    chains,
    owner: OPERATOR,
    tenantUri: 'https://id.example/acme',
    sequenceNumber: 7,
    issuedAt: NOW,
    nextUpdate: new Date(NOW.getTime() + 30 * DAYS),
  });
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into it
  return document as any;
}

const internalEntity = (changes: object = {}): TrustListEntity => ({
  type: 'internal',
  issuerKeyChainId: 'own',
  revocationKeyChainId: 'outside',
  info: { name: 'Acme' },
  ...changes,
});
const externalEntity = (changes: object = {}): TrustListEntity => ({
  type: 'external',
  issuerCertPem: pem(external),
  info: { name: 'Other' },
  ...changes,
});
const entitiesIn = (document: ReturnType<typeof compose>) => document.LoTE.TrustedEntitiesList;
const servicesIn = (document: ReturnType<typeof compose>, index = 0) =>
  entitiesIn(document)[index].TrustedEntityServices.map(
    ({ ServiceInformation: service }: { ServiceInformation: Record<string, unknown> }) => service,
  );
const schemeIn = (document: ReturnType<typeof compose>) => document.LoTE.ListAndSchemeInformation;
const certificatesIn = (service: { ServiceDigitalIdentity: { X509Certificates: { val: string }[] } }) =>
  service.ServiceDigitalIdentity.X509Certificates.map(({ val }) => val);

/** Returns the paths of the faults of a body. */
function faults(body: object): string[] {
  const parsed = TrustListReplacement.safeParse(body);
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
}
function rejectionOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return error.details.errors?.map(({ path, message }) => `${path}: ${message}`).join('\n');
  }
}

describe('published trust list', () => {
  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    [leaf, formerLeaf, external] = [
      await certify({ name: 'Leaf', by: root }),
      await certify({ name: 'Older leaf', by: root }),
      await certify({ name: 'External', by: root }),
    ];
    expired = await certify({ name: 'Expired', until: '2026-05-31T00:00:00Z' });
    const { key } = leafOf(root);
    chains = [
      chain('own', { root: { key, certificate: root.certificate, notAfter: new Date('2035-01-01') } }),
      chain('outside', { former: [{ ...leafOf(formerLeaf), keptUntil: new Date('2035-01-01') }] }),
      chain('over', { active: leafOf(leaf, new Date('2026-05-31T00:00:00Z')) }),
    ];
  });

  describe('contains', () => {
    it('only required properties, unless the operator adds others', () => {
      expect(compose()).to.deep.equal({
        LoTE: {
          ListAndSchemeInformation: {
            LoTEVersionIdentifier: 1,
            LoTESequenceNumber: 7,
            SchemeOperatorName: [{ lang: 'en', value: 'Acme' }],
            ListIssueDateTime: '2026-06-01T12:00:00Z',
            NextUpdate: '2026-07-01T12:00:00Z',
          },
        },
      });
    });

    it('the scheme information of the operator', () => {
      const scheme: SchemeInformation = {
        LoTEType: 'urn:acme:list',
        SchemeOperatorName: [{ lang: 'de', value: 'Acme GmbH' }],
        SchemeOperatorAddress: {
          SchemeOperatorPostalAddress: [{ lang: 'en', StreetAddress: 'Main Street 1', Country: 'DE' }],
          SchemeOperatorElectronicAddress: [{ lang: 'en', uriValue: 'mailto:lists@acme.example' }],
        },
        SchemeName: [{ lang: 'en', value: 'DE:Acme' }],
        SchemeInformationURI: [{ lang: 'en', uriValue: 'https://acme.example/scheme' }],
        StatusDeterminationApproach: 'urn:acme:approach',
        SchemeTypeCommunityRules: [{ lang: 'en', uriValue: 'https://acme.example/rules' }],
        SchemeTerritory: 'DE',
        PolicyOrLegalNotice: [{ LoTELegalNotice: 'As is.' }],
        HistoricalInformationPeriod: 65_535,
        DistributionPoints: ['https://acme.example/list'],
      };
      expect(schemeIn(compose([], scheme))).to.deep.include(scheme);
    });

    it('each entity, with a page and an address', () => {
      const info = {
        name: 'Université',
        lang: 'fr',
        uri: 'https://uni.example',
        country: 'FR',
        locality: 'Lyon',
        postalCode: '69001',
        streetAddress: 'Rue 1',
        contactUri: 'mailto:contact@uni.example',
      };
      const [complete, minimal] = entitiesIn(compose([externalEntity({ info }), internalEntity()]));
      expect(complete.TrustedEntityInformation).to.deep.equal({
        TEName: [{ lang: 'fr', value: 'Université' }],
        TEAddress: {
          TEPostalAddress: [{ lang: 'fr', StreetAddress: 'Rue 1', Locality: 'Lyon', PostalCode: '69001', Country: 'FR' }],
          TEElectronicAddress: [{ lang: 'fr', uriValue: 'mailto:contact@uni.example' }],
        },
        TEInformationURI: [{ lang: 'fr', uriValue: 'https://uni.example' }],
      });
      expect(minimal.TrustedEntityInformation).to.deep.equal({
        TEName: [{ lang: 'en', value: 'Acme' }],
        TEAddress: { TEElectronicAddress: [{ lang: 'en', uriValue: 'https://id.example/acme' }] },
        TEInformationURI: [{ lang: 'en', uriValue: 'https://id.example/acme' }],
      });
    });

    it('the anchors: the CA of a key chain, or the leaves of one without a CA', () => {
      const [issuance, revocation] = servicesIn(compose([internalEntity()]));
      expect(certificatesIn(issuance)).to.deep.equal([root.certificate]);
      expect(certificatesIn(revocation)).to.deep.equal([leaf.certificate, formerLeaf.certificate]);
      expect([issuance.ServiceTypeIdentifier, revocation.ServiceTypeIdentifier]).to.deep.equal([
        `${ETSI}/SvcType/EAA/Issuance`,
        `${ETSI}/SvcType/EAA/Revocation`,
      ]);
      expect(issuance.ServiceName).to.deep.equal([{ lang: 'en', value: 'EAA-Issuance-Service' }]);
      expect(issuance).not.to.have.property('ServiceStatus');
    });

    it('the certificate of an external entity, the first one of a chain', () => {
      const issuerCertPem = `${pem(external)}\n${pem(root)}`;
      const services = servicesIn(compose([externalEntity({ issuerCertPem })]));
      expect(services).to.have.length(1);
      expect(certificatesIn(services[0])).to.deep.equal([external.certificate]);
    });

    it('content that the reader of this service parses', () => {
      const list = parseTrustList(compose([internalEntity(), externalEntity({ info: { name: 'B', country: 'FR' } })]), NOW);
      expect(list).to.deep.include({
        sequenceNumber: 7,
        issuedAt: new Date('2026-06-01T12:00:00Z'),
        nextUpdate: new Date('2026-07-01T12:00:00Z'),
      });
      expect(list.entities.map(({ name, country }) => [name, country])).to.deep.equal([
        ['Acme', undefined],
        ['B', 'FR'],
      ]);
      expect(list.entities[0]?.services[0]?.certificates).to.deep.equal([root.certificate]);
    });
  });

  describe('of a European type', () => {
    for (const [kind, service, provider, approach, rules] of [
      ['EUPIDProvidersList', 'PID', 'PIDProvider', 'PIDProvidersList', 'PIDProviders'],
      ['EUWalletProvidersList', 'WalletSolution', 'WalletProvider', 'WalletProvidersList', 'WalletProvidersList'],
      ['EUWRPACProvidersList', 'WRPAC', 'WRPACProvider', 'WRPACProvidersList', 'WRPACProvidersList'],
      ['EUWRPRCProvidersList', 'WRPRC', 'WRPRCProvider', 'WRPRCrovidersList', 'WRPRCProvidersList'],
      ['EUPubEAAProvidersList', 'PubEAA', 'PubEAAProvider', 'PubEAAProvidersList', 'PubEAAProvidersList'],
    ] as const) {
      it(`${kind} has its own services and rules`, () => {
        const info = { name: 'Acme', country: 'DE' };
        const document = compose([internalEntity({ info })], { LoTEType: `${ETSI}/LoTEType/${kind}` });
        expect(schemeIn(document)).to.deep.include({
          LoTEType: `${ETSI}/LoTEType/${kind}`,
          StatusDeterminationApproach: `${ETSI}/${approach}/StatusDetn/EU`,
          SchemeTypeCommunityRules: [{ lang: 'en', uriValue: `${ETSI}/${rules}/schemerules/EU` }],
          SchemeTerritory: 'EU',
        });
        const types = servicesIn(document).map(({ ServiceTypeIdentifier }: { ServiceTypeIdentifier: string }) => ServiceTypeIdentifier);
        expect(types).to.deep.equal([`${ETSI}/SvcType/${service}/Issuance`, `${ETSI}/SvcType/${service}/Revocation`]);
        const [entity] = entitiesIn(document);
        expect(entity.TrustedEntityInformation.TEInformationURI).to.deep.equal([
          { lang: 'en', uriValue: `${ETSI}/ListOfTrustedEntities/${provider}/DE` },
          { lang: 'en', uriValue: 'https://id.example/acme' },
        ]);
      });
    }

    it('uses the values of the operator if they differ', () => {
      const LoTEType = `${ETSI}/LoTEType/EUPIDProvidersList`;
      const scheme = schemeIn(compose([], { LoTEType, SchemeTerritory: 'DE' }));
      expect(scheme.SchemeTerritory).to.equal('DE');
    });
  });

  describe('cannot be configured', () => {
    const scheme = (members: object) => ({ entities: [], data: { LoTE: { ListAndSchemeInformation: members } } });

    it('with properties that the service writes itself', () => {
      for (const [member, value] of Object.entries({
        LoTEVersionIdentifier: 1,
        LoTESequenceNumber: 900,
        ListIssueDateTime: '2026-06-01T12:00:00Z',
        NextUpdate: null,
      })) {
        const [fault] = faults(scheme({ [member]: value }));
        const message = `${member} is written by the service and cannot be set`;
        expect(fault).to.equal(`data.LoTE.ListAndSchemeInformation: ${message}`);
      }
      const [fault] = faults({ entities: [], data: { LoTE: { TrustedEntitiesList: [] } } });
      expect(fault).to.equal('data.LoTE: TrustedEntitiesList is written by the service and cannot be set');
    });

    it('with any property that would be ignored', () => {
      for (const body of [
        scheme({ SchemeExtensions: [] }),
        scheme({ PointersToOtherLoTE: [] }),
        scheme({ schemeName: [] }),
        { entities: [], data: { ListAndSchemeInformation: {} } },
        { entities: [], data: { LoTE: { Signature: 'x' } } },
        { entities: [internalEntity({ issuerCertPem: 'x' })] },
        { entities: [internalEntity({ info: { name: 'Acme', vat: '1' } })] },
        { entities: [externalEntity({ revocationKeyChainId: 'own' })] },
      ]) {
        expect(faults(body), JSON.stringify(body)).to.have.length(1);
      }
    });

    it('with policies and notices together', () => {
      const policy = { LoTEPolicy: { lang: 'en', uriValue: 'https://acme.example/policy' } };
      const notice = { LoTELegalNotice: 'As is.' };
      expect(faults(scheme({ PolicyOrLegalNotice: [policy, policy] }))).to.deep.equal([]);
      expect(faults(scheme({ PolicyOrLegalNotice: [notice] }))).to.deep.equal([]);
      expect(faults(scheme({ PolicyOrLegalNotice: [policy, notice] }))).to.deep.equal([
        'data.LoTE.ListAndSchemeInformation.PolicyOrLegalNotice: either policies or notices, not both',
      ]);
    });

    it('with invalid entities', () => {
      for (const body of [
        {},
        { entities: 'all' },
        { entities: [{}] },
        { entities: [{ type: 'other', info: { name: 'x' } }] },
        { entities: [{ type: 'internal', info: { name: 'x' } }] },
        { entities: [internalEntity({ info: {} })] },
        { entities: [internalEntity({ info: { name: ' ' } })] },
        { entities: [internalEntity({ info: { name: 'x', country: 'de' } })] },
        { entities: [internalEntity({ info: { name: 'x', lang: 'e n' } })] },
        { entities: [internalEntity({ info: { name: 'x', uri: 'javascript:alert(1)' } })] },
        { entities: [internalEntity({ info: { name: 'x', contactUri: 'javascript:alert(1)' } })] },
        { entities: Array.from({ length: MAX_ENTITIES + 1 }, () => internalEntity()) },
        { id: '../x', entities: [] },
        { keyChainId: '', entities: [] },
        scheme({ LoTEType: 'local' }),
        scheme({ LoTEType: `${ETSI}/LoTEType/EURegistrarsAndRegistersList` }),
        scheme({ SchemeName: 'DE:Acme' }),
        scheme({ SchemeName: [] }),
        scheme({ SchemeName: [{ value: 'x' }] }),
        scheme({ SchemeTerritory: 'Germany' }),
        scheme({ SchemeInformationURI: [{ lang: 'en', uriValue: 'file:///x' }] }),
        scheme({ HistoricalInformationPeriod: 0 }),
        scheme({ DistributionPoints: ['x'] }),
      ]) {
        expect(faults(body), JSON.stringify(body)).to.not.deep.equal([]);
      }
    });
  });

  it('returns the notices of earlier releases as text', () => {
    const olderNotice = { LoTELegalNotice: { lang: 'en', value: 'As is.' } };
    const policy = { LoTEPolicy: { lang: 'en', uriValue: 'https://acme.example/policy' } };
    const noticesOf = (data: TrustListData | null | undefined) => data?.LoTE?.ListAndSchemeInformation?.PolicyOrLegalNotice;
    const listData = (...entries: object[]) => ({ LoTE: { ListAndSchemeInformation: { PolicyOrLegalNotice: entries } } }) as TrustListData;
    expect(noticesOf(normalizeNotices(listData(olderNotice, policy)))).to.deep.equal([{ LoTELegalNotice: 'As is.' }]);
    expect(noticesOf(normalizeNotices(listData(policy, olderNotice)))).to.deep.equal([policy]);
    expect(normalizeNotices({})).to.deep.equal({});
    const message = TrustListReplacement.parse({ entities: [], data: listData(olderNotice) });
    expect(noticesOf(message.data)).to.deep.equal([{ LoTELegalNotice: 'As is.' }]);
    expect(faults({ entities: [], data: listData({ LoTELegalNotice: { value: 'x' } }) })).to.have.length(1);
  });

  describe('rejects entities', () => {
    const check = (...entities: TrustListEntity[]) => rejectionOf(() => assertCertificatesValid(entities, chains, NOW));

    it('unless all certificates are present, readable and not expired', () => {
      expect(check(internalEntity(), externalEntity())).to.equal(undefined);
      expect(check(internalEntity(), internalEntity({ issuerKeyChainId: 'none' }))).to.equal(
        'entities.1.issuerKeyChainId: There is no key chain "none".',
      );
      expect(check(internalEntity({ revocationKeyChainId: 'over' }))).to.match(
        /^entities\.0\.revocationKeyChainId: .*expired at 2026-05-31T00:00:00/,
      );
      expect(check(externalEntity({ revocationCertPem: pem(expired) }))).to.match(/^entities\.0\.revocationCertPem: .*expired/);
      for (const text of [
        'x',
        pem(external).replace('MII', 'AAA'),
        `${pem(external)}-----BEGIN CERTIFICATE-----\nx`,
        pem(external).replaceAll('CERTIFICATE', 'PUBLIC KEY'),
        '-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----',
      ]) {
        expect(check(externalEntity({ issuerCertPem: text })), text).to.match(/^entities\.0\.issuerCertPem: Send one/);
      }
    });

    it('with several certificates that are no chain', () => {
      expect(check(externalEntity({ issuerCertPem: pem(external) + pem(root) }))).to.equal(undefined);
      for (const text of [pem(external) + pem(leaf), pem(root) + pem(external)]) {
        expect(check(externalEntity({ issuerCertPem: text }))).to.match(/issued by the next one/);
      }
    });

    it('with a key chain that is removed while the list is created', () => {
      expect(rejectionOf(() => compose([internalEntity({ revocationKeyChainId: 'gone' })]))).to.match(
        /^entities\.0\.revocationKeyChainId: /,
      );
    });
  });

  it('lists the key chains that entities refer to', () => {
    expect(keyChainIdsOf([internalEntity(), externalEntity()])).to.deep.equal(['own', 'outside']);
  });

  describe('is signed', () => {
    const signer = (id: string, days: number, changes: Partial<KeyChain> = {}) =>
      chain(id, {
        usages: ['trustList'],
        active: leafOf(leaf, new Date(NOW.getTime() + days * DAYS)),
        createdAt: new Date(2026, 0, days === 0 ? 1 : Number(id.length)),
        ...changes,
      });
    const selectedSigner = (chains: readonly KeyChain[], keyChainId?: string) => {
      const { chain, nextUpdate } = selectListSigner(chains, NOW, keyChainId);
      return [chain.id, nextUpdate.toISOString()];
    };
    const IN_30_DAYS = '2026-07-01T12:00:00.000Z';

    it('for thirty days, and never beyond the certificate of its signer', () => {
      expect(selectedSigner([signer('a', 300)])).to.deep.equal(['a', IN_30_DAYS]);
      expect(selectedSigner([signer('a', 10)])).to.deep.equal(['a', '2026-06-11T12:00:00.000Z']);
      expect(selectedSigner([signer('a', 300), signer('bb', 10)], 'bb')).to.deep.equal(['bb', '2026-06-11T12:00:00.000Z']);
    });

    it('by a key chain with a later expiry in preference to an older one', () => {
      expect(selectedSigner([signer('a', 10), signer('bb', 300)])).to.deep.equal(['bb', IN_30_DAYS]);
      expect(selectedSigner([signer('a', 300), signer('bb', 300)])).to.deep.equal(['a', IN_30_DAYS]);
    });

    it('by no key chain with another usage or an expired certificate', () => {
      expect(rejectionOf(() => selectedSigner([signer('a', 300, { usages: ['signing'] })]))).to.match(/trustList/);
      expect(rejectionOf(() => selectedSigner([signer('a', -1)]))).to.match(/expired/);
      expect(rejectionOf(() => selectedSigner([signer('a', 300), signer('bb', -1)], 'bb'))).to.match(/expired/);
      expect(rejectionOf(() => selectedSigner([signer('a', 300), chain('s')], 's'))).to.match(/usage "trustList"/);
    });

    it('and can be parsed', () => {
      const payload = Buffer.from('{"LoTE":{"é":1}}').toString('base64url');
      expect(documentOf({ jwt: `e30.${payload}.AA` })).to.deep.equal({ LoTE: { é: 1 } });
    });
  });
});
