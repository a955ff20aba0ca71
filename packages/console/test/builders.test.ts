import { expect } from 'chai';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { CATALOGUE } from '../src/pages/credentials/catalogue.ts';
import { claimsOfSample, claimsOfSchema, isDisclosable, setDisclosable, withClaims, withKind } from '../src/pages/credentials/claims.ts';
import { contrast, contrastInWords } from '../src/pages/credentials/contrast.ts';
import { linkable } from '../src/pages/credentials/linkable.ts';
import { doubtsOf } from '../src/pages/questions/lint.ts';
import { askedOf, kindsOf, sentenceOf } from '../src/pages/questions/question.ts';
import { put } from '../src/parts/json-paths.ts';

const NOTHING = [undefined, null, 5, 'text', [], [5, null], { config: 5 }, { config: { claims: [null, 5, { path: 7 }] } }];

describe('the builders of the console', () => {
  it('measure contrast as WCAG 2.2 does', () => {
    expect(contrast('#000', '#ffffff')).to.be.closeTo(21, 0.001);
    expect(contrast('#777777', '#fff')).to.be.closeTo(4.48, 0.01);
    expect(contrast('#12345', '#fff')).to.equal(undefined);
    // What is just below the border is not rounded up to it.
    expect(contrastInWords(contrast('#777777', '#fff') ?? 0)).to.match(/^4\.4 to 1: only large text/);
  });

  it('put and take away members without a change of the order of the others', () => {
    expect(JSON.stringify(put({ a: 1, b: { c: 2 } }, ['b', 'c'], 3))).to.equal('{"a":1,"b":{"c":3}}');
    expect(put({ a: [1, 2, 3] }, ['a', 1], undefined)).to.deep.equal({ a: [1, 3] });
    expect(put('text', ['a', 0], 1)).to.deep.equal({ a: [1] });
    expect(put({}, ['__proto__', 'x'], 1)).not.to.have.property('x');
  });

  it('make and unmake frames of nested claims', () => {
    const framed = setDisclosable({ disclosureFrame: { _sd: ['a'] } }, ['b', 'c'], true);
    expect(framed).to.deep.equal({ disclosureFrame: { _sd: ['a'], b: { _sd: ['c'] } } });
    expect(isDisclosable(framed, ['b', 'c'])).to.equal(true);
    expect(isDisclosable(framed, ['b'])).to.equal(false);
    // What stands in something that can be withheld can be withheld with it.
    expect(isDisclosable(framed, ['a', 'x'])).to.equal(true);
    expect(setDisclosable(setDisclosable(framed, ['b', 'c'], false), ['a'], false)).to.deep.equal({});
  });

  it('read samples and schemas, and refuse what is neither', () => {
    expect(claimsOfSample({ a: { b: 1 }, c_d: [1] }).map(({ path, name }) => [path.join('.'), name])).to.deep.equal([
      ['a.b', 'B'],
      ['c_d', 'C d'],
    ]);
    const schema = { properties: { a: { title: 'First' }, b: { properties: { c: {} } } }, required: ['a'] };
    expect(claimsOfSchema(schema)).to.deep.equal([
      { path: ['a'], name: 'First', required: true },
      { path: ['b', 'c'], name: 'C', required: false },
    ]);
    for (const wrong of [[], 'text', null]) {
      expect(() => claimsOfSample(wrong)).to.throw(/an object/);
      expect(() => claimsOfSchema(wrong)).to.throw(/properties/);
    }
  });

  for (const kind of CATALOGUE) {
    it(`make what the service takes of the catalogue: ${kind.title}`, () => {
      const draft = withKind({ id: 'kind', config: { format: 'dc+sd-jwt' }, statusManagement: true }, kind, 'en');
      const made = CredentialConfigurationBody.safeParse(draft);
      expect(made.error?.issues ?? []).to.deep.equal([]);
      const [asked] = kindsOf([draft]);
      expect(asked?.type).to.equal(kind.type);
    });
  }

  it('say what a verifier could link', () => {
    const draft = withClaims({ keyBinding: true, statusManagement: true, config: { format: 'dc+sd-jwt' } }, claimsOfSample({ a: 1 }), 'en');
    const said = linkable(draft, 5).map(({ what }) => what);
    expect(said).to.include('The key of the holder').and.to.include('The place in the status list');
    expect(said).not.to.include('All claims');
    expect(linkable(draft, 5)[0]?.why).to.include('5 copies');
    const bare = { keyBinding: false, config: { format: 'dc+sd-jwt' } };
    const bareSaid = linkable(bare, 1).map(({ what }) => what);
    expect(bareSaid).to.include('All claims').and.not.to.include('The key of the holder');
  });

  it('warn about queries for an age and a name, and about queries without a trusted issuer', () => {
    const draft = {
      id: 'q',
      purpose: [{ lang: 'en', content: 'To sell' }],
      trustAnchors: [{ ownAuthorities: true }],
      dcql_query: {
        credentials: [
          {
            id: 'm',
            format: 'mso_mdoc',
            meta: { doctype_value: 'org.iso.18013.5.1.mDL' },
            claims: [{ path: ['org.iso.18013.5.1', 'age_over_18'] }, { path: ['org.iso.18013.5.1', 'family_name'] }],
          },
        ],
      },
    };
    expect(PresentationConfigurationBody.safeParse(draft).success).to.equal(true);
    const kinds = kindsOf([]);
    const said = doubtsOf(draft, { kinds, knowsOwn: true }).map(({ what }) => what);
    expect(said.join('\n')).to.include('with family name also who that is').and.to.include('nobody else is trusted');
    const trusting = put(draft, ['trustAnchors', 1], { certificate: 'PEM' });
    const fewer = put(trusting, ['dcql_query', 'credentials', 0, 'claims', 1], undefined);
    expect(doubtsOf(fewer, { kinds, knowsOwn: true })).to.deep.equal([]);
  });

  it('accept any other input beside the form', () => {
    for (const value of [...NOTHING, { dcql_query: 5 }, { dcql_query: { credentials: [null, { claims: [5] }] } }]) {
      expect(sentenceOf(value, kindsOf([value]))).to.be.a('string');
      expect(doubtsOf(value, { kinds: kindsOf([]), knowsOwn: true })).to.be.an('array');
      expect(linkable(value, 1)).to.be.an('array');
      expect(askedOf(value)).to.be.an('array');
    }
  });
});
