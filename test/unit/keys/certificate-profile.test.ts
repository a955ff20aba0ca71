import { expect } from 'chai';
import { caValidity, commonNames, leafValidity } from '../../../domain/keys/certificate-profile.ts';
import { Failure } from '../../../domain/shared/failure.ts';

const NOW = new Date('2026-06-01T12:00:00.789Z');

describe('the certificate profile', () => {
  it('makes a CA valid for ten years, beginning with the day of five minutes ago', () => {
    const { notBefore, notAfter } = caValidity(NOW);
    expect(notBefore.toISOString()).to.equal('2026-06-01T00:00:00.000Z');
    const afterMidnight = caValidity(new Date('2026-06-01T00:04:00Z')).notBefore;
    expect(afterMidnight.toISOString()).to.equal('2026-05-31T00:00:00.000Z');
    expect(notAfter.toISOString()).to.equal('2036-06-01T11:55:00.000Z');
  });

  it('makes a leaf valid for the wanted days', () => {
    const { notAfter } = leafValidity(NOW, 365, caValidity(NOW).notAfter);
    expect(notAfter.toISOString()).to.equal('2027-06-01T11:55:00.000Z');
  });

  it('ends a leaf with its CA', () => {
    const caNotAfter = new Date('2026-07-01T00:00:00Z');
    expect(leafValidity(NOW, 365, caNotAfter).notAfter).to.deep.equal(caNotAfter);
  });

  for (const days of [0, -1, 1.5, Number.NaN, 4000]) {
    it(`refuses a leaf of ${days} days`, () => {
      expect(() => leafValidity(NOW, days, caValidity(NOW).notAfter)).to.throw(Failure);
    });
  }

  it('names CA and leaf differently within 64 characters', () => {
    const { ca, leaf } = commonNames(`${'ü'.repeat(63)}😀😀`);
    expect(ca).to.match(/^ü{61} CA$/);
    expect([...leaf]).to.have.length(64);
    expect(leaf.endsWith('😀')).to.equal(true);
    expect(commonNames('Acme')).to.deep.equal({ ca: 'Acme CA', leaf: 'Acme' });
  });
});
