import { expect } from 'chai';
import { credentialTimes, mdocValidity, sdJwtTimes } from '../../../domain/issuance/credential.ts';

const NOW = new Date('2026-06-01T12:34:56.789Z');
const DAY = 86_400;
const at = (text: string) => new Date(`${text}Z`);
const WIDE = { notBefore: at('2026-01-01T00:00:00'), notAfter: at('2036-01-01T00:00:00') };

describe('The times of an mdoc', () => {
  const cases: [string, number | undefined, typeof WIDE, string, string][] = [
    ['are whole days', 30 * DAY, WIDE, '2026-06-01T00:00:00', '2026-07-02T00:00:00'],
    ['are whole hours for a short life', 3600, WIDE, '2026-06-01T12:00:00', '2026-06-01T14:00:00'],
    ['have an end without a lifetime', undefined, WIDE, '2026-06-01T00:00:00', '2026-08-31T00:00:00'],
    [
      'begin at the first full hour of a certificate of today',
      30 * DAY,
      { ...WIDE, notBefore: at('2026-06-01T08:15:00') },
      '2026-06-01T09:00:00',
      '2026-07-02T00:00:00',
    ],
    [
      'begin with a certificate of this hour',
      30 * DAY,
      { ...WIDE, notBefore: at('2026-06-01T12:15:00') },
      '2026-06-01T12:15:00',
      '2026-07-02T00:00:00',
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
      const times = mdocValidity(NOW, lifeTime, signer);
      expect(times.signed).to.deep.equal(at(signed));
      expect(times.validFrom).to.deep.equal(times.signed);
      expect(times.validUntil).to.deep.equal(at(validUntil));
      // ISO/IEC 18013-5 section 9.3.1, and no copy is born expired
      expect(times.signed >= signer.notBefore && times.validUntil <= signer.notAfter).to.equal(true);
      expect(times.signed <= NOW && times.validUntil > NOW).to.equal(true);
    });
  }

  it('are the same within an hour, as those of an SD-JWT VC are', () => {
    const later = new Date(NOW.getTime() + 20 * 60_000);
    for (const lifeTime of [3600, 2 * DAY, undefined]) {
      expect(mdocValidity(later, lifeTime, WIDE)).to.deep.equal(mdocValidity(NOW, lifeTime, WIDE));
      expect(credentialTimes(later, lifeTime)).to.deep.equal(credentialTimes(NOW, lifeTime));
    }
  });
});

describe('The times of an SD-JWT VC', () => {
  const end = (text: string) => ({ notAfter: at(text) });
  const cases: [string, number | undefined, { notAfter: Date } | undefined, string | undefined][] = [
    ['end with the life of the credential', 30 * DAY, WIDE, '2026-07-02T00:00:00'],
    [
      'end at the last full hour of the certificate',
      30 * DAY,
      end('2026-06-15T08:15:00'),
      '2026-06-15T08:00:00',
    ],
    ['end with a certificate of this hour', 3600, end('2026-06-01T12:50:00'), '2026-06-01T12:50:00'],
    ['are not cut without a certificate', 30 * DAY, undefined, '2026-07-02T00:00:00'],
    ['have no end without a lifetime', undefined, end('2026-06-15T08:15:00'), undefined],
  ];
  for (const [what, lifeTime, signer, expected] of cases) {
    it(what, () => {
      const { iat, exp } = sdJwtTimes(NOW, lifeTime, signer);
      expect(iat).to.equal(credentialTimes(NOW, lifeTime).iat);
      expect(exp).to.equal(expected === undefined ? undefined : at(expected).getTime() / 1000);
    });
  }
});
