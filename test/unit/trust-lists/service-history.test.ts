import { expect } from 'chai';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { readTrustList } from '../../../domain/trust-lists/lote.ts';
import { credentialIssuers, selectCertificates } from '../../../domain/trust-lists/select-certificates.ts';
import { goodPeriods, isWithin } from '../../../domain/trust-lists/service-history.ts';
import { certify } from '../../support/test-certificates.ts';

const day = (number: number) => new Date(Date.UTC(2026, 0, number));
const state = (status: string, since: number) => ({ type: 't', status, since: day(since) });
const periods = (...history: ReturnType<typeof state>[]) =>
  goodPeriods(day(20), history, ({ status }) => status === 'good').map(({ from, until }) => [
    from.getUTCDate(),
    until.getUTCDate(),
  ]);

describe('The history of a service', () => {
  it('has the periods in which it stood as it has to, in whatever order they come', () => {
    expect(periods(state('good', 10), state('bad', 5), state('good', 1))).to.deep.equal([
      [10, 20],
      [1, 5],
    ]);
    expect(periods(state('good', 1), state('bad', 5), state('good', 10))).to.deep.equal([
      [10, 20],
      [1, 5],
    ]);
  });
  it('has none of what began with the present state or later, and of what began at one time', () => {
    expect(periods(state('good', 20), state('good', 25))).to.deep.equal([]);
    expect(periods(state('good', 5), state('bad', 5))).to.deep.equal([]);
    expect(periods(state('bad', 5), state('good', 5))).to.deep.equal([]);
  });
  it('counts from the beginning of a period, and not at its end', () => {
    const period = [{ from: day(1), until: day(5) }];
    expect([1, 4, 5].map((at) => isWithin(period, day(at)))).to.deep.equal([true, true, false]);
  });

  describe('on a list of trusted entities (TS 119 602)', () => {
    const STATES = 'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus';
    const read = async (history: unknown, status = 'withdrawn', start = '2026-01-20T00:00:00Z') => {
      const { certificate } = await certify({ name: 'Body', ca: true });
      const ServiceInformation = {
        ServiceTypeIdentifier: 'http://uri.etsi.org/19602/SvcType/PubEAA/Issuance',
        ...(status !== '' && { ServiceStatus: `${STATES}/${status}` }),
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
      return readTrustList({ LoTE } as unknown as JsonObject, day(25));
    };
    const notified = { ServiceStatus: `${STATES}/notified`, StatusStartingTime: '2026-01-10T00:00:00Z' };

    for (const [what, status, start, count] of [
      ['began yesterday', 'notified', '2026-01-24T00:00:00Z', 1],
      ['begins tomorrow', 'notified', '2026-01-26T00:00:00Z', 0],
      ['is not stated and begins tomorrow', '', '2026-01-26T00:00:00Z', 0],
    ] as const) {
      it(`selects ${count} certificates of a service whose status ${what}`, async () => {
        const list = await read(undefined, status, start);
        expect(selectCertificates(list, credentialIssuers())).to.have.length(count);
        expect(selectCertificates(list, credentialIssuers(undefined, 'issuance'))).to.have.length(count);
      });
    }

    it('is read, and counts for who asks for the time of issuance alone', async () => {
      const list = await read([notified]);
      const [selected] = selectCertificates(list, credentialIssuers(undefined, 'issuance'));
      expect(selected?.periods).to.deep.equal([{ from: day(10), until: day(20) }]);
      expect(selected?.isFormer).to.equal(true);
      expect(selectCertificates(list, credentialIssuers())).to.deep.equal([]);
    });
    it('vouches for nothing where it cannot be read', async () => {
      const broken = [
        undefined,
        'none',
        [7, null],
        [{ ...notified, StatusStartingTime: 'then' }],
        [{ ...notified, ServiceStatus: 7 }],
        [{ ...notified, ServiceStatus: `${STATES}/other` }],
      ];
      for (const history of broken) {
        const list = await read(history);
        expect(
          selectCertificates(list, credentialIssuers(undefined, 'issuance')),
          String(history),
        ).to.deep.equal([]);
      }
    });
  });
});
