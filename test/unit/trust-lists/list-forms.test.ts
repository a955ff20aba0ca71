import { expect } from 'chai';
import { buildSigningInput } from '../../../domain/formats/jose/compact.ts';
import type { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { NO_ORGANIZATION } from '../../../domain/tenants/organization.ts';
import { composeList } from '../../../domain/trust-lists/compose-list.ts';
import { certificatesOf } from '../../../domain/trust-lists/entity-certificates.ts';
import { assertDistinctIdentities } from '../../../domain/trust-lists/entity-identity.ts';
import { assertNoSequenceJump, assertSequenceIncreases } from '../../../domain/trust-lists/freshness.ts';
import { parseInternalTrustListAddress } from '../../../domain/trust-lists/internal-address.ts';
import type { TrustListEntity } from '../../../domain/trust-lists/list-configuration.ts';
import { isListOfIssuers, profileOf } from '../../../domain/trust-lists/list-profiles.ts';
import { parseTrustList } from '../../../domain/trust-lists/lote.ts';
import { TrustListData } from '../../../domain/trust-lists/scheme-information.ts';
import {
  credentialIssuers,
  isCredentialIssuanceType,
  selectCertificates,
  type TrustPurpose,
} from '../../../domain/trust-lists/select-certificates.ts';
import { approvedPeriods, isWithin } from '../../../domain/trust-lists/service-history.ts';
import { assertSigningTime, parseDateTime, parseSignedList } from '../../../domain/trust-lists/signed-list.ts';
import { TrustListRefusal } from '../../../domain/trust-lists/trust-list-refusal.ts';
import { aKeyChain } from '../../contract/store/builders.ts';
import { type CertifiedKey, certify, pem } from '../../support/test-certificates.ts';

const OPERATOR = { ...NO_ORGANIZATION, name: 'Acme' };
const NOW = new Date('2027-01-15T08:00:00Z');
const ETSI = 'http://uri.etsi.org/19602';

/** Returns the fault of a rejection, or `taken`. */
function faultOf(work: () => unknown): string {
  try {
    work();
    return 'accepted';
  } catch (error) {
    if (error instanceof TrustListRefusal) return error.fault;
    throw error;
  }
}

describe('trust list document', () => {
  const SCHEME = {
    LoTEVersionIdentifier: 1,
    LoTESequenceNumber: 5,
    ListIssueDateTime: '2027-01-15T07:00:00Z',
    NextUpdate: '2027-02-15T07:00:00Z',
  };
  const service = (changes: object = {}) => ({
    ServiceInformation: {
      ServiceTypeIdentifier: `${ETSI}/SvcType/PID/Issuance`,
      ServiceDigitalIdentity: { X509Certificates: [{ val: ' AA\nAA ' }] },
      ...changes,
    },
  });
  const entity = (information: object = {}, ...services: object[]) => ({
    TrustedEntityInformation: { TEName: [{ lang: 'en', value: 'A' }], ...information },
    TrustedEntityServices: services,
  });
  const parse = (scheme: object, ...entities: object[]) =>
    parseTrustList({ LoTE: { ListAndSchemeInformation: { ...SCHEME, ...scheme }, TrustedEntitiesList: entities } } as never, NOW);
  const entityOf = (...parameters: Parameters<typeof entity>) => parse({}, entity(...parameters)).entities[0];
  const serviceOf = (changes: object) => entityOf({}, service(changes))?.services[0];

  it('limits the length of texts, and the number of certificates', () => {
    const longName = 'x'.repeat(2_001);
    for (const changes of [{ ServiceStatus: longName }, { ServiceTypeIdentifier: longName }]) {
      expect(faultOf(() => serviceOf(changes))).to.equal('malformed');
    }
    expect(faultOf(() => entityOf({ TEName: [{ lang: 'en', value: longName }] }))).to.equal('malformed');
    expect(faultOf(() => parse({ SchemeTerritory: longName }))).to.equal('malformed');
    const identityWith = (count: number, val = 'MIIB') => ({
      ServiceDigitalIdentity: { X509Certificates: Array.from({ length: count }, () => ({ val })) },
    });
    expect(faultOf(() => serviceOf(identityWith(5_000)))).to.equal('accepted');
    expect(faultOf(() => serviceOf(identityWith(5_001)))).to.equal('malformed');
    expect(faultOf(() => serviceOf(identityWith(1, 'A'.repeat(20_004))))).to.equal('malformed');
  });

  it('lists entities with their services', () => {
    expect(parse({}, entity({}, service()))).to.deep.include({ sequenceNumber: 5, nextUpdate: new Date('2027-02-15T07:00:00Z') });
    expect(serviceOf({})).to.deep.equal({ ...{ type: `${ETSI}/SvcType/PID/Issuance`, status: undefined, certificates: ['AAAA'] } });
    expect(entityOf({ TEAddress: { TEPostalAddress: [{ Country: 'DE' }] } })?.country).to.equal('DE');
  });

  it('ignores values that are not strings', () => {
    for (const Country of [5, null, ['DE']]) {
      expect(entityOf({ TEAddress: { TEPostalAddress: [{ Country }] } })?.country).to.equal(undefined);
    }
    expect(serviceOf({ ServiceTypeIdentifier: 5 })?.type).to.equal(undefined);
    expect(serviceOf({ ServiceStatus: 'granted' })?.status).to.equal('granted');
    expect(serviceOf({ ServiceStatus: 7 })?.status, 'an unknown status').to.equal('');
    const X509Certificates = [{ val: 5 }, 'AAAA', {}, null, { val: 'BBBB' }];
    expect(serviceOf({ ServiceDigitalIdentity: { X509Certificates } })?.certificates).to.deep.equal(['BBBB']);
    expect(serviceOf({ ServiceDigitalIdentity: null })?.certificates).to.deep.equal([]);
  });

  for (const [description, fault, work] of [
    ['of another version', 'version', () => parse({ LoTEVersionIdentifier: 2 })],
    ['with a number as text', 'malformed', () => parse({ LoTESequenceNumber: '5' })],
    ['with the number 0', 'malformed', () => parse({ LoTESequenceNumber: 0 })],
    ['without a next update', 'malformed', () => parse({ NextUpdate: undefined })],
    ['that has expired', 'outdated', () => parse({ NextUpdate: '2027-01-15T08:00:00Z' })],
    ['of a clock five minutes ahead', 'accepted', () => parse({ ListIssueDateTime: '2027-01-15T08:05:00Z' })],
    ['of a clock further ahead', 'from_the_future', () => parse({ ListIssueDateTime: '2027-01-15T08:05:01Z' })],
    ['with a name that is not a string', 'malformed', () => entityOf({ TEName: [{ lang: 'en', value: 5 }] })],
    ['without a name', 'malformed', () => entityOf({ TEName: [] })],
    ['with a name that is not a list', 'malformed', () => entityOf({ TEName: { value: 'A' } })],
    ['with certificates that are not a list', 'malformed', () => serviceOf({ ServiceDigitalIdentity: { X509Certificates: 'AAAA' } })],
    ['with extensions that are not a list', 'malformed', () => parse({ SchemeExtensions: { critical: true } })],
    ['with a critical extension', 'critical_extension', () => parse({ SchemeExtensions: [{ Critical: true }] })],
    ['with a critical extension of an entity', 'critical_extension', () => entityOf({ TEInformationExtensions: [{ critical: 'x' }] })],
    [
      'with a critical extension of a service',
      'critical_extension',
      () => serviceOf({ ServiceInformationExtensions: [{}, { critical: null }] }),
    ],
    [
      'with extensions that are not critical',
      'accepted',
      () => parse({ SchemeExtensions: [{ critical: false }, { critical: 'false' }, 'critical', { other: true }] }),
    ],
  ] as const) {
    it(`is ${fault === 'accepted' ? 'accepted' : `rejected as ${fault}`} ${description}`, () => expect(faultOf(work)).to.equal(fault));
  }

  it('is closed if it has no next update', () => {
    expect(parse({ NextUpdate: null }, entity({}, service()))).to.deep.include({ nextUpdate: null, entities: [] });
  });

  describe('selects certificates', () => {
    let firstCertificate: CertifiedKey;
    before(async () => {
      firstCertificate = await certify({ name: 'One' });
    });
    const selectIssuers = (purpose: TrustPurpose, ...services: object[]) => selectCertificates(parse({}, entity({}, ...services)), purpose);
    const identityWith = (kind: string, certificate: string, properties: object = {}) =>
      service({
        ServiceTypeIdentifier: `${ETSI}/SvcType/PID/${kind}`,
        ServiceDigitalIdentity: { X509Certificates: [{ val: certificate }] },
        ...properties,
      });

    it('by valid revocation services', () => {
      const withdrawn = { ServiceStatus: `${ETSI}/PubEAAProvidersList/SvcStatus/withdrawn` };
      const notified = { ServiceStatus: `${ETSI}/PubEAAProvidersList/SvcStatus/notified` };
      const { certificate } = firstCertificate;
      const revocation = (...services: object[]) =>
        selectIssuers(credentialIssuers(), identityWith('Issuance', certificate), ...services)[0]?.revocation?.map(
          (listedCertificate) => listedCertificate.certificate,
        );
      expect(revocation()).to.equal(undefined);
      expect(revocation(identityWith('Revocation', certificate))).to.deep.equal([certificate]);
      expect(revocation(identityWith('Revocation', certificate, notified))).to.deep.equal([certificate]);
      expect(revocation(identityWith('Revocation', certificate, withdrawn))).to.deep.equal([]);
      expect(revocation(identityWith('Revocation', 'nonsense'))).to.deep.equal([]);
    });

    it('in strict base64 only', () => {
      const { certificate } = firstCertificate;
      const countSelected = (text: string) => selectIssuers(credentialIssuers(), identityWith('Issuance', text)).length;
      const variant = certificate.endsWith('=') ? certificate.replace(/=+$/, '') : `${certificate}A`;
      expect([certificate, variant, `${certificate.slice(0, 40)}!!!!${certificate.slice(40)}`].map(countSelected)).to.deep.equal([1, 0, 0]);
    });
  });
});

describe('trust list signature', () => {
  const list = (header: object) => parseSignedList(`${buildSigningInput({ alg: 'ES256', ...header }, { LoTE: {} })}.AA`);

  it('names its signer, by certificates first', () => {
    expect(list({ x5c: ['AAAA'] }).signer).to.deep.equal({ chain: ['AAAA'] });
    expect(list({ 'x5t#S256': 'x' }).signer).to.deep.equal({ thumbprint: 'x' });
    expect(list({ x5c: ['AAAA'], 'x5t#S256': 'x' }).signer).to.deep.equal({ chain: ['AAAA'] });
    for (const header of [{}, { 'x5t#S256': 5 }, { x5c: [], 'x5t#S256': 'x' }, { x5c: null, 'x5t#S256': 'x' }]) {
      expect(faultOf(() => list(header))).to.equal('untrusted_signer');
    }
  });

  it('has a signing time in either form', () => {
    const seconds = NOW.getTime() / 1000;
    const signingTimeProblem = (header: object) => faultOf(() => assertSigningTime(list({ x5c: ['AAAA'], ...header }), NOW));
    expect([signingTimeProblem({ iat: seconds + 300 }), signingTimeProblem({ sigT: '2027-01-15T08:05:00Z' })]).to.deep.equal([
      'accepted',
      'accepted',
    ]);
    expect([
      signingTimeProblem({}),
      signingTimeProblem({ iat: 'x' }),
      signingTimeProblem({ iat: null }),
      signingTimeProblem({ sigT: 5 }),
    ]).to.deep.equal([...['accepted', 'malformed', 'malformed', 'malformed']]);
    expect([signingTimeProblem({ iat: seconds + 301 }), signingTimeProblem({ iat: seconds, sigT: '2027-01-15T08:05:01Z' })]).to.deep.equal([
      ...['from_the_future', 'from_the_future'],
    ]);
    for (const text of ['2027-01-15', '2027-01-15T08:00:00', '2027-13-15T08:00:00Z', ['2027-01-15T08:00:00Z'], 5, undefined]) {
      expect(
        faultOf(() => parseDateTime(text, 'time')),
        String(text),
      ).to.equal('malformed');
    }
    expect(parseDateTime('2027-01-15T08:00:00.5Z', 'time').getTime()).to.equal(NOW.getTime() + 500);
  });

  it('changes its number with each release', () => {
    const release = (sequenceNumber: number, contentHash = 'a') => ({ sequenceNumber, contentHash });
    const releaseProblem = (...next: Parameters<typeof release>) => faultOf(() => assertSequenceIncreases(release(5), release(...next)));
    expect([releaseProblem(6, 'b'), releaseProblem(5), releaseProblem(5, 'b'), releaseProblem(4)]).to.deep.equal([
      ...['accepted', 'accepted', 'sequence_reused', 'sequence_went_back'],
    ]);
    // An earlier version recorded releases by the hash of the document.
    const rememberedProblem = (documentHash: string) =>
      faultOf(() => assertSequenceIncreases(release(5, 'document'), { ...release(5, 'content'), documentHash }));
    expect([rememberedProblem('document'), rememberedProblem('other')]).to.deep.equal(['accepted', 'sequence_reused']);
    const previous = { ...release(5), seenAt: new Date(NOW.getTime() - 1_000) };
    const sequenceProblem = (number: number, before?: typeof previous) => faultOf(() => assertNoSequenceJump(before, release(number), NOW));
    expect([
      sequenceProblem(2_005, previous),
      sequenceProblem(2_006, previous),
      sequenceProblem(1e14),
      sequenceProblem(1e14 + 1),
    ]).to.deep.equal([...['accepted', 'sequence_jumped', 'accepted', 'sequence_jumped']]);
    expect(
      [sequenceProblem(2_027_011_500, previous), sequenceProblem(2_027_011_700, previous), sequenceProblem(2_027_134_500, previous)],
      'a date',
    ).to.deep.equal([...['accepted', 'sequence_jumped', 'sequence_jumped']]);
    expect(sequenceProblem(1_006, { ...previous, seenAt: new Date(NOW.getTime() + 5_000) }), 'seen by a fast clock').to.equal(
      'sequence_jumped',
    );
  });
});

describe('trust list of this service', () => {
  const PUBLIC = 'https://id.example';

  it('is identified by its address', () => {
    expect(parseInternalTrustListAddress(`${PUBLIC}/acme/trust-list/main`, PUBLIC)).to.deep.equal({ tenantId: 'acme', listId: 'main' });
    for (const uri of [
      'https://id.example.evil/acme/trust-list/main',
      'https://other.example/acme/trust-list/main',
      'https://ed.example/acme/trust-list/main',
      `${PUBLIC}/acme/trust-list/`,
      `${PUBLIC}/acme/trust-list/main?x=1`,
      `${PUBLIC}/acme/trust-list/a%2fb`,
      `${PUBLIC}/acme/status/main`,
      `${PUBLIC}/Acme/trust-list/main`,
      PUBLIC,
    ]) {
      expect(parseInternalTrustListAddress(uri, PUBLIC), uri).to.equal(undefined);
    }
  });

  it('has a type for issuers', () => {
    expect([profileOf(undefined).service, profileOf('urn:other').service]).to.deep.equal(['EAA', 'EAA']);
    expect(profileOf(`${ETSI}/LoTEType/EUPIDProvidersList`).service).to.equal('PID');
    expect(isListOfIssuers(`${ETSI}/LoTEType/EURegistrarsAndRegistersList`)).to.equal(false);
    expect(isListOfIssuers('urn:other')).to.equal(true);
    for (const [type, isKnown] of [
      [`${ETSI}/SvcType/PID/Issuance`, true],
      ['urn:own/Issuance', true],
      ['/Issuance', false],
      [`${ETSI}/SvcType/PID/Revocation`, false],
      [`${ETSI}/SvcType/PID/Issuance/`, false],
      [`${ETSI}/SvcType/WRPAC/Issuance`, false],
      [`${ETSI}/SvcType/WalletSolution/Issuance`, false],
    ] as const) {
      expect(isCredentialIssuanceType(type), type).to.equal(isKnown);
    }
  });

  it('rejects properties that its author may not set, with the reason', () => {
    const messages = (data: unknown) => TrustListData.safeParse(data).error?.issues.map(({ message }) => message);
    const scheme = (members: object) => messages({ LoTE: { ListAndSchemeInformation: members } });
    expect(scheme({ LoTESequenceNumber: 5, x: 1 })).to.deep.equal(['LoTESequenceNumber is written by the service and cannot be set']);
    expect(scheme({ x: 1, y: 2 })).to.deep.equal(['x, y cannot be set']);
    expect(messages({ LoTE: 'x' })?.join()).to.match(/expected object/);
    expect(messages('x')?.join()).to.match(/expected object/);
  });

  it('has the scheme address for entities with a known country', async () => {
    const issuerCertPem = pem(await certify({ name: 'A' }));
    const addresses = (country?: string) => {
      const info = { name: 'A', ...(country !== undefined && { country }) };
      const { LoTE } = composeList({
        configuration: {
          entities: [{ type: 'external', issuerCertPem, info }],
          data: { LoTE: { ListAndSchemeInformation: { LoTEType: `${ETSI}/LoTEType/EUPIDProvidersList` } } },
        },
        ...{ chains: [], owner: OPERATOR, tenantUri: 'https://acme.example', sequenceNumber: 1 },
        ...{ issuedAt: NOW, nextUpdate: NOW },
      }) as { LoTE: { TrustedEntitiesList: { TrustedEntityInformation: { TEInformationURI: { uriValue: string }[] } }[] } };
      return LoTE.TrustedEntitiesList[0]?.TrustedEntityInformation.TEInformationURI.map(({ uriValue }) => uriValue);
    };
    expect(addresses()).to.deep.equal(['https://acme.example']);
    expect(addresses('DE')).to.deep.equal([`${ETSI}/ListOfTrustedEntities/PIDProvider/DE`, 'https://acme.example']);
  });

  it('has each name once, or twice for the same certificates', () => {
    const listedCertificate = (certificate: string) => {
      const signingTimeProblem = aKeyChain('acme' as never, certificate);
      const { root: _, ...chain } = { ...signingTimeProblem, active: { ...signingTimeProblem.active, certificates: [certificate] } };
      return chain;
    };
    const chains = [
      listedCertificate('a'),
      listedCertificate('b'),
      { ...listedCertificate('none'), active: { ...listedCertificate('none').active, certificates: [] } },
    ];
    const entity = (issuerKeyChainId: string, country?: string): TrustListEntity => ({
      ...{ type: 'internal', issuerKeyChainId, info: { name: 'A', ...(country !== undefined && { country }) } },
    });
    const problemsOf = (...entities: TrustListEntity[]) => {
      try {
        assertDistinctIdentities(entities, chains, OPERATOR);
        return [];
      } catch (error) {
        return (error as Failure).details.errors?.map(({ path, message }) => `${path}: ${/entities\.\d/.exec(message)?.[0]}`);
      }
    };
    expect(problemsOf(entity('a'), entity('a'), entity('b', 'DE'))).to.deep.equal([]);
    expect(problemsOf(entity('a'), entity('b'))).to.deep.equal(['entities.1.info.name: entities.0']);
    expect(problemsOf(entity('a'), entity('b'), entity('a'))).to.deep.equal(['entities.1.info.name: entities.0']);
    const ownedBy = { ...OPERATOR, country: 'DE' };
    expect(() => assertDistinctIdentities([entity('a'), entity('b', 'DE')], chains, ownedBy), 'one country').to.throw();
    const source = (keyChainId: string) => ({ purpose: 'Issuance', member: 'issuerKeyChainId', keyChainId }) as const;
    expect(certificatesOf(source('none'), chains), 'of a key chain without certificates').to.deep.equal([]);
  });
});

const day = (number: number) => new Date(Date.UTC(2026, 0, number));
const stateAt = (status: string, since: number) => ({ type: 't', status, since: day(since) });
const periods = (...history: ReturnType<typeof stateAt>[]) =>
  approvedPeriods(day(20), history, ({ status }) => status === 'good').map(({ from, until }) => [from.getUTCDate(), until.getUTCDate()]);

describe('service history', () => {
  it('has the periods with the required status, in any order', () => {
    expect(periods(stateAt('good', 10), stateAt('bad', 5), stateAt('good', 1))).to.deep.equal([
      [10, 20],
      [1, 5],
    ]);
    expect(periods(stateAt('good', 1), stateAt('bad', 5), stateAt('good', 10))).to.deep.equal([
      [10, 20],
      [1, 5],
    ]);
  });
  it('omits states that began with the current one or later, and several with the same time', () => {
    expect(periods(stateAt('good', 20), stateAt('good', 25))).to.deep.equal([]);
    expect(periods(stateAt('good', 5), stateAt('bad', 5))).to.deep.equal([]);
    expect(periods(stateAt('bad', 5), stateAt('good', 5))).to.deep.equal([]);
  });
  it('includes the beginning of a period, and excludes its end', () => {
    const period = [{ from: day(1), until: day(5) }];
    expect([1, 4, 5].map((dayNumber) => isWithin(period, day(dayNumber)))).to.deep.equal([true, true, false]);
  });

  describe('on a list of trusted entities (TS 119 602)', () => {
    const STATUS_PREFIX = 'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus';
    const parse = async (history: unknown, status = 'withdrawn', start = '2026-01-20T00:00:00Z') => {
      const { certificate } = await certify({ name: 'Body', ca: true });
      const ServiceInformation = {
        ServiceTypeIdentifier: 'http://uri.etsi.org/19602/SvcType/PubEAA/Issuance',
        ...(status !== '' && { ServiceStatus: `${STATUS_PREFIX}/${status}` }),
        StatusStartingTime: start,
        ServiceDigitalIdentity: { X509Certificates: [{ val: certificate }] },
      };
      const LoTE = {
        ListAndSchemeInformation: {
          ...{ LoTEVersionIdentifier: 1, LoTESequenceNumber: 1 },
          ...{ ListIssueDateTime: '2026-01-21T00:00:00Z', NextUpdate: '2026-03-01T00:00:00Z' },
        },
        TrustedEntitiesList: [
          {
            TrustedEntityInformation: { TEName: [{ lang: 'en', value: 'Body' }] },
            TrustedEntityServices: [{ ServiceInformation, ServiceHistory: history }],
          },
        ],
      };
      return parseTrustList({ LoTE } as unknown as JsonObject, day(25));
    };
    const notified = { ServiceStatus: `${STATUS_PREFIX}/notified`, StatusStartingTime: '2026-01-10T00:00:00Z' };

    for (const [description, status, start, count] of [
      ['began yesterday', 'notified', '2026-01-24T00:00:00Z', 1],
      ['begins tomorrow', 'notified', '2026-01-26T00:00:00Z', 0],
      ['is not stated and begins tomorrow', '', '2026-01-26T00:00:00Z', 0],
    ] as const) {
      it(`selects ${count} certificates of a service whose status ${description}`, async () => {
        const list = await parse(undefined, status, start);
        expect(selectCertificates(list, credentialIssuers())).to.have.length(count);
        expect(selectCertificates(list, credentialIssuers(undefined, 'issuance'))).to.have.length(count);
      });
    }

    it('is parsed, and only used for verification at the time of issuance', async () => {
      const list = await parse([notified]);
      const [selected] = selectCertificates(list, credentialIssuers(undefined, 'issuance'));
      expect(selected?.periods).to.deep.equal([{ from: day(10), until: day(20) }]);
      expect(selected?.isFormer).to.equal(true);
      expect(selectCertificates(list, credentialIssuers())).to.deep.equal([]);
    });
    it('trusts nothing if it is malformed', async () => {
      const invalidHeaders = [
        undefined,
        'none',
        [7, null],
        [{ ...notified, StatusStartingTime: 'then' }],
        [{ ...notified, ServiceStatus: 7 }],
        [{ ...notified, ServiceStatus: `${STATUS_PREFIX}/other` }],
      ];
      for (const history of invalidHeaders) {
        const list = await parse(history);
        expect(selectCertificates(list, credentialIssuers(undefined, 'issuance')), String(history)).to.deep.equal([]);
      }
    });
  });
});
