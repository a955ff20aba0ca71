import { expect } from 'chai';
import { contrastFindings, contrastOf, readableColours } from '../../../domain/shared/contrast.ts';

describe('The contrast of two colours', () => {
  const KNOWN: readonly [string, string, number | undefined][] = [
    ['#000', '#fff', 21],
    ['#ffffff', '#FFFFFF', 1],
    ['#767676', '#fff', 4.54],
    ['#777777', '#ffffff', 4.48],
    ['#0000ff', '#ffffff', 8.59],
    ['#767676ff', '#ffff', 4.54],
    ['#76767680', '#fff', undefined],
    ['red', '#fff', undefined],
    ['#12345', '#fff', undefined],
    ['#12', '#fff', undefined],
  ];
  for (const [one, other, ratio] of KNOWN) {
    it(`of ${one} and ${other} is ${ratio}`, () => {
      const found = contrastOf(one, other);
      expect(found === undefined ? undefined : Math.round(found * 100) / 100).to.equal(ratio);
      expect(contrastOf(other, one)).to.equal(found);
    });
  }

  it('decides whether a page takes them', () => {
    const text = '#ffffff';
    expect(readableColours({ background: '#767676', text })).to.deep.equal({ background: '#767676', text });
    expect(readableColours({ background: '#777777', text })).to.equal(undefined);
    expect(readableColours({ text })).to.equal(undefined);
    expect(readableColours({ background: '#00000080', text })).to.equal(undefined);
    expect(readableColours({ background: '#0a0', text: 'url(//evil)' })).to.equal(undefined);
    expect(readableColours({ background: '#fff;} * { x' })).to.equal(undefined);
  });

  it('is enough on every background that comes alone', () => {
    for (let value = 0; value < 256; value += 5) {
      for (const background of [value * 0x010101, value * 0x0100, value * 0x010000 + 0xff]) {
        const hex = `#${background.toString(16).padStart(6, '0')}`;
        const colours = readableColours({ background: hex });
        expect(contrastOf(hex, colours?.text ?? hex), hex).to.be.at.least(4.5);
      }
    }
  });

  it('is told to the one who writes what cannot be read', () => {
    const [finding, ...more] = contrastFindings('pages.textColor', { background: '#777', text: '#fff' });
    expect(finding).to.deep.include({ member: 'pages.textColor' });
    expect(finding?.message).to.include('4.5 to 1');
    expect(more).to.deep.equal([]);
    expect(contrastFindings('x', { background: '#000', text: '#fff' })).to.deep.equal([]);
    expect(contrastFindings('x', { background: '#000' })).to.deep.equal([]);
  });
});
