import { expect } from 'chai';
import {
  credentialTimes,
  drawnWithin,
  type ExpiryRange,
  expiryRanges,
  mdocValidity,
  protocolClaims,
  sdJwtTimes,
} from '../../../domain/issuance/credential.ts';

const NOW = new Date('2026-06-01T12:34:56.789Z');
const DAY = 86_400;
const at = (text: string) => new Date(`${text}Z`);
const WIDE = { notBefore: at('2026-01-01T00:00:00'), notAfter: at('2036-01-01T00:00:00') };

describe('The times of an mdoc', () => {
  const cases: [string, number | undefined, typeof WIDE, string, string][] = [
    ['are whole days', 30 * DAY, WIDE, '2026-06-01T00:00:00', '2026-07-01T00:00:00'],
    ['are whole hours up to two days', 2 * DAY, WIDE, '2026-06-01T12:00:00', '2026-06-03T12:00:00'],
    ['are whole hours from two hours on', 7200, WIDE, '2026-06-01T12:00:00', '2026-06-01T14:00:00'],
    ['end at the second below two hours', 7199, WIDE, '2026-06-01T12:00:00', '2026-06-01T14:34:55'],
    ['end with a life of minutes', 300, WIDE, '2026-06-01T12:00:00', '2026-06-01T12:39:56'],
    ['have an end without a lifetime', undefined, WIDE, '2026-06-01T00:00:00', '2026-08-30T00:00:00'],
    [
      'begin at the first full hour of a certificate of today',
      30 * DAY,
      { ...WIDE, notBefore: at('2026-06-01T08:15:00') },
      '2026-06-01T09:00:00',
      '2026-07-01T00:00:00',
    ],
    [
      'begin with a certificate of this hour',
      30 * DAY,
      { ...WIDE, notBefore: at('2026-06-01T12:15:00') },
      '2026-06-01T12:15:00',
      '2026-07-01T00:00:00',
    ],
    [
      'end at the last full hour of the certificate',
      30 * DAY,
      { ...WIDE, notAfter: at('2026-06-15T08:15:00') },
      '2026-06-01T00:00:00',
      '2026-06-15T08:00:00',
    ],
    [
      'end with a certificate that ends within the hour',
      30 * DAY,
      { ...WIDE, notAfter: at('2026-06-01T12:50:00') },
      '2026-06-01T00:00:00',
      '2026-06-01T12:50:00',
    ],
  ];
  for (const [what, lifeTime, signer, signed, validUntil] of cases) {
    it(what, () => {
      const times = mdocValidity(NOW, lifeTime, signer, 0);
      expect(times.signed).to.deep.equal(at(signed));
      expect(times.validFrom).to.deep.equal(times.signed);
      expect(times.validUntil).to.deep.equal(at(validUntil));
      // ISO/IEC 18013-5 section 9.3.1, and no copy is born expired
      expect(times.signed >= signer.notBefore && times.validUntil <= signer.notAfter).to.equal(true);
      expect(times.signed <= NOW && times.validUntil > NOW).to.equal(true);
    });
  }

  it('are the same within an hour, as those of an SD-JWT VC are, whatever is drawn', () => {
    const later = new Date(NOW.getTime() + 20 * 60_000);
    for (const lifeTime of [7200, 2 * DAY, 3 * DAY, undefined]) {
      expect(mdocValidity(later, lifeTime, WIDE, 0.9)).to.deep.equal(mdocValidity(NOW, lifeTime, WIDE, 0));
      expect(credentialTimes(later, lifeTime, 0.9)).to.deep.equal(credentialTimes(NOW, lifeTime, 0));
    }
  });
});

describe('The end of a credential', () => {
  const seconds = Math.floor(NOW.getTime() / 1000);
  const LAST_DRAWN = 1 - 2 ** -32;

  it('is never later than its lifetime says, nor are two hours or more cut by more than their unit', () => {
    for (const lifeTime of [
      60,
      61,
      300,
      1199,
      1800,
      7199,
      7200,
      9000,
      DAY,
      2 * DAY,
      2 * DAY + 1,
      400 * DAY,
    ]) {
      for (const drawn of [0, 0.5, LAST_DRAWN]) {
        const { iat, exp = 0 } = credentialTimes(NOW, lifeTime, drawn);
        const unit = lifeTime > 2 * DAY ? DAY : 3600;
        const most = lifeTime < 7200 ? Math.floor(lifeTime / 10) : unit - 1;
        expect(exp - seconds, `${lifeTime}`).to.be.within(lifeTime - most, lifeTime);
        // What was issued within one unit looks the same.
        expect([iat % unit, iat <= seconds]).to.deep.equal([0, true]);
      }
    }
  });

  it('is drawn from the whole last tenth of less than two hours, both of its ends included', () => {
    for (const [lifeTime, first, last] of [
      [300, 270, 300],
      [1800, 1620, 1800],
      [3600, 3240, 3600],
    ] as const) {
      const ends = Array.from({ length: 4000 }, (_, index) => {
        const { exp = 0 } = credentialTimes(NOW, lifeTime, index / 4000);
        return exp - seconds;
      });
      expect([Math.min(...ends), Math.max(...ends)]).to.deep.equal([first, last]);
      expect(new Set(ends).size).to.equal(last - first + 1);
    }
  });

  it('of the first and the last third are more than two minutes apart from one hour on', () => {
    for (let lifeTime = 3600; lifeTime < 7200; lifeTime++) {
      const end = (range: ExpiryRange, random: number) =>
        credentialTimes(NOW, lifeTime, drawnWithin(range, random)).exp ?? 0;
      // The larger what is drawn, the earlier the end.
      expect(end('first third', LAST_DRAWN) - end('last third', 0), `${lifeTime}`).to.be.above(120);
      expect(end('first third', 0) - seconds, `${lifeTime}`).to.equal(lifeTime);
      expect(end('last third', LAST_DRAWN) - seconds).to.equal(lifeTime - Math.floor(lifeTime / 10));
    }
  });

  it('is drawn from the first third for one copy of a batch and from the last for another, by chance', () => {
    expect(expiryRanges(1, [0.9, 0.9])).to.deep.equal(['whole']);
    const places = new Set<string>();
    for (let one = 0; one < 1; one += 0.1) {
      for (let other = 0; other < 1; other += 0.1) {
        const ranges = expiryRanges(4, [one, other]);
        expect(ranges.toSorted()).to.deep.equal(['first third', 'last third', 'whole', 'whole']);
        places.add(ranges.join());
      }
    }
    expect(places.size).to.equal(4 * 3);
  });

  it('is spread over more than two minutes from twenty minutes and ten seconds on', () => {
    for (let lifeTime = 1210; lifeTime < 7200; lifeTime += 10) {
      const [latest, earliest] = [0, LAST_DRAWN].map(
        (drawn) => credentialTimes(NOW, lifeTime, drawn).exp ?? 0,
      );
      expect((latest ?? 0) - (earliest ?? 0), `${lifeTime}`).to.be.above(120);
    }
  });

  it('stays within the certificate, whatever is drawn', () => {
    const signer = { ...WIDE, notAfter: at('2026-06-01T12:39:50') };
    expect(sdJwtTimes(NOW, 300, signer, 0).exp).to.equal(signer.notAfter.getTime() / 1000);
    expect(mdocValidity(NOW, 300, signer, 0).validUntil).to.deep.equal(signer.notAfter);
    expect(sdJwtTimes(NOW, 300, signer, LAST_DRAWN).exp).to.equal(seconds + 270);
    expect(mdocValidity(NOW, 300, signer, LAST_DRAWN).validUntil.getTime() / 1000).to.equal(seconds + 270);
  });
});

describe('The times of an SD-JWT VC', () => {
  const end = (text: string) => ({ notAfter: at(text) });
  const cases: [string, number | undefined, { notAfter: Date } | undefined, string | undefined][] = [
    ['end with the life of the credential', 30 * DAY, WIDE, '2026-07-01T00:00:00'],
    [
      'end at the last full hour of the certificate',
      30 * DAY,
      end('2026-06-15T08:15:00'),
      '2026-06-15T08:00:00',
    ],
    ['end with a certificate of this hour', 3600, end('2026-06-01T12:50:00'), '2026-06-01T12:50:00'],
    ['are not cut without a certificate', 30 * DAY, undefined, '2026-07-01T00:00:00'],
    ['have no end without a lifetime', undefined, end('2026-06-15T08:15:00'), undefined],
  ];
  for (const [what, lifeTime, signer, expected] of cases) {
    it(what, () => {
      const { iat, exp } = sdJwtTimes(NOW, lifeTime, signer, 0);
      expect(iat).to.equal(credentialTimes(NOW, lifeTime, 0).iat);
      expect(exp).to.equal(expected === undefined ? undefined : at(expected).getTime() / 1000);
    });
  }
});

describe('What the service writes into an SD-JWT VC', () => {
  const named = { issuer: 'https://issuer.example/acme', vct: 'urn:card:1' };
  const written = (more: object = {}) =>
    protocolClaims({ ...named, times: credentialTimes(NOW, null, 0), ...more });

  it('has no end without a lifetime, and no member for what it is not', () => {
    const iat = at('2026-06-01T00:00:00').getTime() / 1000;
    expect(written()).to.deep.equal({ iss: named.issuer, vct: named.vct, iat });
  });

  it('has the hash of its type where that is hosted so', () => {
    expect(written({ vctIntegrity: 'sha256-x' })).to.include({ 'vct#integrity': 'sha256-x' });
  });
});
