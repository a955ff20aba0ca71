import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Measure, type Measures, measureCheckout, measureLanguage } from './support/language.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Highest share of places that break a rule, in percent. */
const LIMITS: Readonly<Record<keyof Measures, number>> = { bindings: 2.5, types: 0, fragments: 0.5, relatives: 2, persons: 0.2, titles: 1 };

const PLANTED = `
/** Of which others may go along. */
type Known = { readonly id: string };
/** Whether it is. */
export function read({ told, id: asked }: { told: string; id: string }, [found]: string[], ...rest: string[]) {
  // Somebody was first.
  const known = [told, asked, found, rest].map((own) => own);
  return known;
}
`;
const PLANTED_TEST = `describe('N12 a list', () => { it('is rejected with an unknown key', () => {}); it('tells nobody', () => {}); });`;

describe('writing style', () => {
  let measures: Measures;
  before(() => {
    measures = measureCheckout(ROOT);
  });

  for (const [name, percent] of Object.entries(LIMITS) as [keyof Measures, number][]) {
    it(`has at most ${percent} % of ${name} that break a rule of CONTRIBUTING.md`, () => {
      const { places, total }: Measure = measures[name];
      expect(total).to.be.greaterThan(100);
      const share = (100 * places.length) / total;
      expect(share, `${places.length} of ${total}, such as\n${places.slice(0, 20).join('\n')}\n`).to.be.at.most(percent);
    });
  }

  it('finds a planted violation of each rule', () => {
    const plantedMeasures = measureLanguage([{ file: 'a.ts', text: PLANTED }], [{ file: 'a.test.ts', text: PLANTED_TEST }]);
    const places = Object.fromEntries(Object.entries(plantedMeasures).map(([name, measure]) => [name, measure.places]));
    expect(places).to.deep.equal({
      bindings: ['told', 'asked', 'found', 'rest', 'known', 'own'].map((name) => `a.ts: ${name}`),
      types: ['a.ts: Known'],
      fragments: ['a.ts: Of which others may go along.'],
      relatives: ['a.ts: Whether it is.'],
      persons: ['a.ts: // Somebody was first.'],
      titles: ['a.test.ts: N12 a list', 'a.test.ts: tells nobody'],
    });
    const totals = Object.fromEntries(Object.entries(plantedMeasures).map(([name, measure]) => [name, measure.total]));
    expect(totals).to.deep.equal({ bindings: 6, types: 1, fragments: 2, relatives: 2, persons: 3, titles: 3 });
  });
});
